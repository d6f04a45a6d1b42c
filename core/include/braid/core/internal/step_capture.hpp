#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/internal/kernel_args/random.hpp>
#include <braid/core/random.hpp>
#include <braid/core/storage.hpp>
#include <braid/core/stream.hpp>
#include <braid/core/tensor_impl.hpp>

// A step of a program, recorded once and replayed: a CUDA graph. What the step does on the host
// beside launching kernels (to count steps, to draw random numbers, to replace gradients) is
// recorded as functions that a replay calls.
namespace braid::detail {

/// Functions that run before each replay, in the order of the recording.
using ReplayFunctions = std::vector<std::function<void()>>;

inline constexpr const char* kNoHostReads =
    "a captured step that reads no values on the host, got one that does";

/// Records the work of one stream as a graph; made by DeviceBackend::make_recorder. Values that
/// change between replays are in a table on the device.
class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  /// Begins to record what is queued on stream(). Memory that is allocated for that stream comes
  /// from a pool of its own, which lives as long as the graph and the tensors in it. Kernels add
  /// functions that update the table to `functions`, which must outlive the recorder. Returns
  /// false if the device cannot record. Throws CudaError, OutOfMemoryError.
  [[nodiscard]] virtual bool begin(ReplayFunctions& functions) = 0;
  /// The stream whose work is recorded: the current one of the step's ops.
  [[nodiscard]] virtual const std::shared_ptr<Stream>& stream() const noexcept = 0;
  /// Makes the graph. Throws CaptureError if the step did something that no graph can contain.
  virtual void end() = 0;
  /// Ends a recording whose step failed.
  virtual void cancel() noexcept = 0;
  /// Orders later work of `stream` after the latest launch.
  virtual void follow(Stream& stream) = 0;
  /// Copies the table to the device if it changed, and launches the graph, in the order of
  /// `stream`.
  virtual void launch(Stream& stream) = 0;
  /// The entry of the table for random ops: an address on the device, and the host's value.
  [[nodiscard]] virtual const RandomShift* random_shift() const noexcept = 0;
  virtual void set_random_shift(const RandomShift& shift) noexcept = 0;
};

/// A recorded step. While it is being recorded, the thread's ThreadState points to it. Not
/// thread-safe.
class StepCapture {
 public:
  /// Records the step, then runs it for the first time. If the step throws, the host's state is as
  /// before, nothing was run, and the exception goes on. Null if the device cannot record.
  ///
  /// Throws CaptureError for a step that cannot be recorded, and what the step throws.
  static std::unique_ptr<StepCapture> record(Device device, const std::function<void()>& step);
  ~StepCapture();
  StepCapture(const StepCapture&) = delete;
  StepCapture& operator=(const StepCapture&) = delete;

  /// Runs the step again. Returns false, and does nothing, if a tensor that the step uses was
  /// replaced since it was recorded: a gradient, an optimizer's state, or one that the program has
  /// dropped.
  [[nodiscard]] bool replay();

  /// Orders later work of the current stream after the latest run. Call it before changing the
  /// step's inputs.
  void follow();

  [[nodiscard]] Device device() const noexcept { return device_; }

  // Called by ops while the step is recorded.
  /// The capture of the calling thread's step; null if there is none.
  [[nodiscard]] static StepCapture* current() noexcept;
  /// Throws CaptureError `op: expected …` if the thread records a step.
  static void refuse(const char* op, const char* why);
  /// Replays require that all these functions return true.
  void require(std::function<bool()> still) { requirements_.push_back(std::move(still)); }
  /// Every replay calls `again`; a recording that fails calls `undo`.
  void on_replay(std::function<void()> again) { functions_.push_back(std::move(again)); }
  void on_failure(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  /// The step reads the gradient of a leaf, or is about to replace it.
  void reads_grad(TensorImpl& leaf);
  void replaces_grad(TensorImpl& leaf);
  /// For random ops: the seed and the number of the stream differ from the recorded ones by this.
  [[nodiscard]] const RandomShift* random_shift() const noexcept {
    return recorder_->random_shift();
  }
  /// The step calls a layer in this mode. Later modes are those that mode_set was told, because the
  /// layer may be gone.
  void reads_mode(const bool& training);
  /// Tells all captures that a layer's mode is set.
  static void mode_set(const bool* training, bool on);
  // Called by Storage.
  void made(const Storage& storage) { made_.insert(&storage); }
  void destroyed(const Storage& storage) noexcept { made_.erase(&storage); }
  void read(const Storage& storage);
  void written(Storage& storage);

 private:
  struct Gradient {
    Ref<TensorImpl> leaf, first, last;  // the gradient before and after the step
    bool read = false;                  // the step uses the first one, or that there is none
    bool required = false;              // the leaf's requires_grad when it was recorded
  };
  StepCapture(Device device, std::unique_ptr<StepRecorder> recorder);
  Gradient& gradient_of(TensorImpl& leaf);
  void finish();
  void undo() noexcept;

  Device device_;
  ReplayFunctions functions_;
  std::vector<std::function<bool()>> requirements_;
  std::vector<std::function<void()>> undo_;
  std::unordered_map<TensorImpl*, Gradient> gradients_;
  std::unordered_set<const Storage*> made_;
  // of tensors that existed before the step and that it uses, and whether it writes to them
  struct Used {
    Ref<Storage> storage;
    bool written = false;
  };
  std::unordered_map<const Storage*, Used> used_;
  [[nodiscard]] bool all_used_elsewhere() const noexcept;
  struct Mode {
    bool recorded, now;
  };
  std::unordered_map<const bool*, Mode> modes_;  // guarded by the mutex of all captures
  [[nodiscard]] bool same_modes() const;
  RandomState random_;  // before the step was recorded
  std::uint64_t draws_ = 0;
  std::unique_ptr<StepRecorder> recorder_;  // destroyed first: it refers to functions_
};

}  // namespace braid::detail
