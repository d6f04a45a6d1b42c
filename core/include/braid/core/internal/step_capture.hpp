#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/internal/kernel_args/random.hpp>
#include <braid/core/precision.hpp>
#include <braid/core/random.hpp>
#include <braid/core/storage.hpp>
#include <braid/core/stream.hpp>
#include <braid/core/tensor_impl.hpp>

// A step of a program, recorded once and replayed: a CUDA graph. What the step does on the host
// beside launching kernels (to count steps, to draw random numbers, to replace gradients) is
// recorded as functions that a replay calls.
namespace braid::detail {

/// A function that runs before each replay.
struct ReplayFunction {
  std::function<void()> again;
  std::function<void()> undo = {};  // if the replay fails, or the recording; may be empty
};
/// They run in the order of the recording.
using ReplayFunctions = std::vector<ReplayFunction>;

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
  /// The name of a setting of the device's kernels that is another one than when the recording
  /// began; null if there is none.
  [[nodiscard]] virtual const char* changed_setting() const noexcept = 0;
};

/// What the ops of a step read on the host besides their arguments.
struct StepSettings {
  bool grad_enabled = true;
  std::optional<DType> autocast = {};
  Device default_device = {};
  Float32Precision precision = Float32Precision::exact;
  std::uint64_t hooks = 0;  // the number of changes of hooks so far
  /// Those of the calling thread.
  [[nodiscard]] static StepSettings now() noexcept;
  friend bool operator==(const StepSettings&, const StepSettings&) noexcept = default;
};

/// A recorded step. While it is being recorded, the thread's ThreadState points to it. Not
/// thread-safe.
class StepCapture {
 public:
  /// Records the step; run() runs it for the first time. If the step throws, the host's state is as
  /// before, nothing was run, and the exception goes on. Null if the device cannot record.
  ///
  /// Throws CaptureError for a step that cannot be recorded, and what the step throws.
  static std::unique_ptr<StepCapture> record(Device device, const std::function<void()>& step);
  /// If run() was not called, or has thrown, the host's state is as before the recording.
  ~StepCapture();
  StepCapture(const StepCapture&) = delete;
  StepCapture& operator=(const StepCapture&) = delete;

  /// The first run, directly after record().
  void run();
  /// Null if a replay does what the step would do now. Otherwise says what has changed since the
  /// step was recorded, as in "the mode of a layer". Allocates nothing.
  [[nodiscard]] const char* changed() const;
  /// Runs the step again, if nothing has changed. If it throws, the host's state is as before.
  void replay();

  /// Orders later work of the current stream after the latest run. Call it before changing the
  /// step's inputs.
  void follow();

  [[nodiscard]] Device device() const noexcept { return device_; }

  // Called by ops while the step is recorded.
  /// The capture of the calling thread's step; null if there is none.
  [[nodiscard]] static StepCapture* current() noexcept;
  /// Throws CaptureError `op: expected …` if the thread records a step.
  static void refuse(const char* op, const char* why);
  /// The stream whose work is recorded.
  [[nodiscard]] const Stream& stream() const noexcept { return *recorder_->stream(); }
  /// Throws CaptureError unless this is the stream whose work is recorded.
  void check_stream(const Stream& stream) const;
  /// Replays require that all these functions return true; `what` is what has changed otherwise.
  void require(const char* what, std::function<bool()> still) {
    requirements_.push_back({what, std::move(still)});
  }
  /// Every replay calls `again`; a replay or a recording that fails calls `undo`.
  void on_replay(std::function<void()> again, std::function<void()> undo) {
    functions_.push_back({std::move(again), std::move(undo)});
  }
  /// The step reads the gradient of a leaf, or is about to replace it.
  void reads_grad(TensorImpl& leaf);
  void replaces_grad(TensorImpl& leaf);
  /// For random ops: the seed and the number of the stream differ from the recorded ones by this.
  [[nodiscard]] const RandomShift* random_shift() const noexcept {
    return recorder_->random_shift();
  }
  /// The step takes this many streams from the generator.
  void takes_streams(std::uint64_t streams) noexcept { drawn_ += streams; }
  /// The step calls a layer in this mode. Later modes are those that mode_set was told, because the
  /// layer may be gone.
  void reads_mode(const bool& training);
  /// Tells all captures that a module's mode is set. The module need not be a layer that called
  /// reads_mode: a program's own modules read `training` as they like.
  static void mode_set(const bool* training, bool before, bool on);
  /// Tells all captures that requires_grad of a leaf is set to another value.
  static void requires_grad_set(const TensorImpl& leaf, bool on);
  /// Tells all captures that a hook was registered, which a plain step would call: of a leaf with
  /// this storage, or of a layer. Throws CaptureError, naming `op`, if a step that is recorded does
  /// that, except with a leaf that it has made.
  static void hooks_changed(const char* op, const Storage* of);
  static void hook_removed() noexcept;
  /// True if the step has made the storage.
  [[nodiscard]] bool has_made(const Storage& storage) const { return made_.contains(&storage); }
  /// True if the step has written to the storage.
  [[nodiscard]] bool has_written(const Storage& storage) const;
  // Called by Storage.
  void made(const Storage& storage) { made_.insert(&storage); }
  /// `part` was made as a part of `whole`: what uses it uses the whole.
  void sliced(const Storage& part, Storage& whole);
  void destroyed(const Storage& storage) noexcept;
  void read(const Storage& storage);
  void written(Storage& storage);

 private:
  struct Gradient {
    Ref<TensorImpl> leaf, first, last;  // the gradient before and after the step
    bool read = false;                  // the step uses the first one, or that there is none
    bool required = false;              // the leaf's requires_grad when it was recorded
    bool made = false;                  // the step makes the last one
    const Storage* memory = nullptr;    // the leaf's after the step; only compared
  };
  StepCapture(Device device, std::unique_ptr<StepRecorder> recorder);
  Gradient& gradient_of(TensorImpl& leaf);
  void tell_gradients(Stream& stream);
  void drop_own_gradients();
  void finish();
  /// Undoes the first `count` functions.
  void undo(std::size_t count) noexcept;
  void undo_recording() noexcept;

  Device device_;
  ReplayFunctions functions_;
  struct Requirement {
    const char* what;
    std::function<bool()> still;
  };
  std::vector<Requirement> requirements_;
  std::unordered_map<TensorImpl*, Gradient> gradients_;
  // uses the gradients that the step makes, which keep it alive; only compared
  const Stream* told_ = nullptr;
  std::unordered_set<const Storage*> made_;
  std::unordered_map<const Storage*, Storage*>
      slices_;  // made in the step, of storages from before
  // of tensors that existed before the step and that it uses
  struct Used {
    Ref<Storage> storage;
    bool written = false;
    std::uint64_t versions = 0;  // by how much the step increases the version
  };
  std::unordered_map<const Storage*, Used> used_;
  Used& use(Storage& storage);
  [[nodiscard]] bool all_used_elsewhere() const noexcept;
  struct Mode {
    bool recorded, now;
    bool called = false;     // the step has called the layer or set its mode
    bool set_first = false;  // it set the mode before it called the layer
    [[nodiscard]] bool differs() const noexcept { return recorded != now; }
  };
  template <class Concerns>
  static void note_all(const bool* flag, bool before, bool on, const Concerns& concerns);
  void note_mode(const bool* training, bool before, bool on, bool own);
  // of layers, and requires_grad of tensors; guarded by the mutex of all captures
  std::unordered_map<const bool*, Mode> modes_;
  std::atomic<std::int64_t> other_modes_{0};  // the number of modes_ that differ
  StepSettings settings_;                     // around the step
  RandomState random_;                        // before the step was recorded
  std::uint64_t draws_ = 0;                   // of all threads, meanwhile
  std::uint64_t drawn_ = 0;                   // by the step
  enum class State : std::uint8_t { idle, recording, recorded, ran };
  std::atomic<State> state_{State::idle};
  std::unique_ptr<StepRecorder> recorder_;  // destroyed first: it refers to functions_
};

}  // namespace braid::detail
