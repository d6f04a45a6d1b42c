#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>

namespace braid::parallel {

/// A view of `count` contiguous elements in a device's memory. Does not own the memory.
struct BufferView {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::float32;
  Device device;
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(count) * size_of(dtype);
  }
};

/// Collective operations over a fixed group of devices. The rank of a device is its index in the
/// group. Rank 0 is the root.
///
/// One call takes any number of items, so that an implementation can start them together. `buffers`
/// holds one view per item and rank of this process, grouped by item:
/// `buffers[item * devices().size() + i]` is on `devices()[i]`. All views of an item have the same
/// dtype and count. Where every rank has a result, the same holds for `results`.
///
/// The work runs after everything already queued on the current stream of each device, and before
/// everything queued there later. In a group of one device nothing is sent; a separate result is
/// filled by a copy. Use a communicator from one thread at a time. Each call first checks its
/// buffers: a wrong one throws ArgumentError and nothing is changed. Sums require floating point
/// dtypes (else DTypeError).
///
/// A collective that fails later throws CommError (CommTimeoutError, CommAbortedError) or the
/// device's error. The buffers that it writes are then undefined, and those that it only reads are
/// unchanged. With NCCL, every later call throws too.
///
/// Writes through a raw pointer are not tracked. If other code caches copies of a tensor (as
/// DataParallel does with weights), call `tensor.storage()->bump_version()` after such a write.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// The number of ranks in all processes.
  [[nodiscard]] int size() const noexcept { return size_; }
  /// The devices of this process's ranks, in rank order.
  [[nodiscard]] std::span<const Device> devices() const noexcept;

  /// Copies rank 0's buffer of each item to the other ranks' buffers.
  void broadcast(std::span<const BufferView> buffers);

  /// Sums the ranks' buffers of each item into `results[item]`, which is on rank 0's device and may
  /// be rank 0's own buffer. The other buffers are only read. A buffer without data (null, count 0)
  /// counts as zeros; at least one buffer of an item must have data. `local` adds in a fixed order:
  /// neighbours first, then pairs at distance 2, 4, … in rank: ((0+1)+(2+3))+((4+5)+6). NCCL
  /// chooses the order itself.
  void reduce(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Replaces every rank's buffer of an item by the sum over all ranks, added as in reduce. The
  /// bits are the same on every rank.
  void all_reduce(std::span<const BufferView> buffers);

  /// Gives every rank the buffers of all ranks, concatenated in rank order. `results` has the
  /// layout of `buffers`; each result has size() times the count. A rank's buffer may be its own
  /// part of its result; otherwise it must lie outside all results.
  void all_gather(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Sums the buffers of an item as in reduce and gives rank r part r of the sum. A buffer consists
  /// of size() parts of equal length. `results` has the layout of `buffers`; each result has the
  /// count of one part. A rank's result may be its own part of its buffer; otherwise it must lie
  /// outside all buffers.
  void reduce_scatter(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Gives rank r part r of every rank's buffer, concatenated in rank order. A buffer consists of
  /// size() parts of equal length. `results` has the layout and counts of `buffers`; each result
  /// must lie outside all buffers.
  void all_to_all(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Waits until the collectives are done that Braid has queued without a wait: with NCCL those of
  /// the buckets of a backward, which calls this at its end. Throws what they would have thrown.
  /// Does nothing for `local`.
  virtual void wait() {}
  /// Throws the error that ended the communicator, even if so far only the library knows of it.
  /// Later calls throw CommError with the first error's text, or CommAbortedError. Does nothing
  /// while the communicator works, and nothing for `local`.
  virtual void check() {}

  /// Ends running calls and releases the library's resources. Any thread may call it, any number of
  /// times. Running calls and later ones throw CommAbortedError. Does nothing for `local`, whose
  /// calls never wait for other processes.
  virtual void abort() noexcept {}

 protected:
  Communicator(std::vector<Device> devices, int size);

 private:
  // Called with checked views, and only in groups of at least two ranks.
#define BRAID_IN_PLACE(name) virtual void do_##name(std::span<const BufferView> buffers) = 0;
#define BRAID_TO_ROOT(name)                                   \
  virtual void do_##name(std::span<const BufferView> buffers, \
                         std::span<const BufferView> results) = 0;
#define BRAID_EXCHANGE(name, buffer, result, types)           \
  virtual void do_##name(std::span<const BufferView> buffers, \
                         std::span<const BufferView> results) = 0;
#include <braid/parallel/internal/collectives.def>

  /// Checks the buffers and results of an exchange: see internal/collectives.def.
  void check_exchange(const char* op, bool whole_buffers, bool whole_results, bool floating,
                      std::span<const BufferView> buffers,
                      std::span<const BufferView> results) const;

  std::vector<Device> devices_;
  int size_;
};

/// Returns a communicator for devices of this process that copies and adds through the device
/// interface. It works between any devices.
///
/// Throws    DeviceError for a device that does not exist or is listed twice, ArgumentError for an
///           empty list
///
///     const auto communicator = parallel::make_local_communicator({"cpu:0", "cpu:1"});
///     const Tensor t = ones({3}, {.device = "cpu:0"}), u = ones({3}, {.device = "cpu:1"});
///     const std::vector<parallel::BufferView> views{
///         {t.data<float>(), 3, t.dtype(), t.device()},
///         {u.data<float>(), 3, u.dtype(), u.device()},
///     };
///     communicator->all_reduce(views);  // both are 2 2 2
[[nodiscard]] std::unique_ptr<Communicator> make_local_communicator(std::vector<Device> devices);

/// Returns a communicator for CUDA devices of this process that uses NVIDIA's NCCL (libnccl.so.2,
/// 2.17 or newer, opened at run time). Each device has its own communication stream.
///
/// A call returns when its work is done on all devices, so an error or a hang belongs to that call;
/// the buckets of a backward are only queued, and backward waits for them at its end.
/// A call that takes longer than `timeout` seconds is aborted and throws CommTimeoutError. Each
/// device must be a different GPU. NCCL 2.30 and newer can share a GPU between devices as an
/// experiment, if NCCL_MULTI_RANK_GPU_ENABLE=1 is set. Emulated devices use a fake NCCL.
///
/// Throws    DeviceError (no library, one that is too old, a device that is not CUDA, a GPU listed
///           twice), ArgumentError (an empty list, a timeout that is not positive), CommError if
///           the library reports an error, CommTimeoutError
[[nodiscard]] std::unique_ptr<Communicator> make_nccl_communicator(std::vector<Device> devices,
                                                                   double timeout = 600);

/// The communicator that DataParallel and its primitives use. A group of one device always uses
/// local.
enum class CommunicatorKind : std::uint8_t {
  /// nccl if all devices are different, real GPUs and the library can be opened; otherwise local
  automatic,
  local,
  nccl,  ///< always nccl; throws DeviceError where that is not possible
};
struct CommunicatorOptions {
  CommunicatorKind kind = CommunicatorKind::automatic;
  double timeout = 600;  ///< the longest time in seconds that a collective over NCCL may take
};

/// Returns the options last set by set_communicator_options. Without them, returns those of the
/// environment: BRAID_COMMUNICATOR (automatic, local, nccl) and BRAID_COMMUNICATOR_TIMEOUT
/// (seconds).
///
/// Throws    ArgumentError if these have other values
[[nodiscard]] CommunicatorOptions communicator_options();
/// Sets the options of all communicators created from now on, and calls reset_communicators.
///
/// Throws    ArgumentError for a timeout that is not positive
///
///     parallel::set_communicator_options({.timeout = 60});
void set_communicator_options(const CommunicatorOptions& options);

/// Returns the communicator for these devices. Only this function chooses the kind. Communicators
/// are kept for the process, also after an error, so that no caller misses the error. Any thread
/// may use them.
///
/// Throws    what the functions that make them throw, and ArgumentError for wrong options
[[nodiscard]] std::shared_ptr<Communicator> communicator_over(std::span<const Device> devices);
/// Forgets the communicators kept by communicator_over, so that the next use makes new ones. Call
/// it after a CommError. A forgotten communicator is destroyed with its last user.
void reset_communicators();

}  // namespace braid::parallel
