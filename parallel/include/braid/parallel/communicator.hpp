#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>

namespace braid::parallel {

/// `count` dense elements in a device's memory; not owned.
struct BufferView {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::float32;
  Device device;
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(count) * size_of(dtype);
  }
};

/// Collective operations over a fixed group of devices. The rank of a device is its place in the
/// group; rank 0 is the root.
///
/// A call takes any number of items at once, so that an implementation can start them together:
/// `buffers` holds, item after item, one view for each rank of this process
/// (`buffers[item * devices().size() + i]` lies on `devices()[i]`); the views of an item have one
/// dtype and count, and so have those of `results` where each rank has one. The work is after what
/// was queued before on the current stream of each device, and before what will be queued there. In
/// a group of one nothing is sent: what has a result of its own is copied there. One thread at a
/// time uses a communicator. All check their buffers first; a wrong one throws ArgumentError and
/// nothing has been changed. Sums are of floating point types (DTypeError).
///
/// A collective that fails later throws CommError (CommTimeoutError, CommAbortedError) or the error
/// of a device; what it was to write is undefined then, what it was only to read is unchanged, and
/// every later call throws too.
///
/// What is written through a pointer leaves no trace: who writes into a tensor's memory that others
/// keep copies of (the weights of a DataParallel) says so by `tensor.storage()->bump_version()`.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Number of ranks, in all processes.
  [[nodiscard]] int size() const noexcept { return size_; }
  /// The devices of this process's ranks, in rank order.
  [[nodiscard]] std::span<const Device> devices() const noexcept { return devices_; }

  /// Copies rank 0's buffer of each item into the other ranks' buffers.
  void broadcast(std::span<const BufferView> buffers);

  /// Adds the ranks' buffers of each item: `results[item]`, on rank 0's device, gets the sum and
  /// may be rank 0's own buffer. The others are only read. A buffer without data (null, count 0)
  /// counts as zeros; an item needs at least one with data.
  /// `local` adds in a fixed order: neighbours first, then pairs at distance 2, 4, … of the rank:
  /// ((0+1)+(2+3))+((4+5)+6). NCCL has an order of its own.
  void reduce(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Every rank's buffer of an item becomes the sum of all, added as reduce does: the same bits
  /// everywhere.
  void all_reduce(std::span<const BufferView> buffers);

  /// Every rank gets the buffers of all, one behind the other in rank order: `results`, laid out as
  /// `buffers`, have size() times the count. A rank's buffer may be its own part of its result, and
  /// else lies outside all results.
  void all_gather(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// The buffers of an item, size() parts of equal length each, are added as reduce does, and rank
  /// r gets part r of the sum: `results`, laid out as `buffers`, have the count of a part. A rank's
  /// result may be its own part of its buffer, and else lies outside all buffers.
  void reduce_scatter(std::span<const BufferView> buffers, std::span<const BufferView> results);

  /// Throws what has ended the communicator, where only the library's answer shows it; once it has
  /// ended, CommError with the first error's text, or CommAbortedError. Does nothing while it
  /// works.
  virtual void check() {}

  /// Ends what is under way and gives the library's resources back; from any thread, more than once
  /// too. Calls that run, and later ones, throw CommAbortedError.
  /// Nothing to do for `local`, whose calls cannot wait for anybody.
  virtual void abort() noexcept {}

 protected:
  Communicator(std::vector<Device> devices, int size);

 private:
  // Called with views that were checked, in groups of two ranks and more.
  virtual void do_broadcast(std::span<const BufferView> buffers) = 0;
  virtual void do_reduce(std::span<const BufferView> buffers,
                         std::span<const BufferView> results) = 0;
  virtual void do_all_reduce(std::span<const BufferView> buffers) = 0;
  virtual void do_all_gather(std::span<const BufferView> buffers,
                             std::span<const BufferView> results) = 0;
  virtual void do_reduce_scatter(std::span<const BufferView> buffers,
                                 std::span<const BufferView> results) = 0;

  std::vector<Device> devices_;
  int size_;
};

/// A group of devices of this process, by copies and adds over the seam: works between any devices.
/// Throws DeviceError for a device that does not exist or stands in the list twice, ArgumentError
/// for an empty list.
[[nodiscard]] std::unique_ptr<Communicator> make_local_communicator(std::vector<Device> devices);

/// A group of CUDA devices of this process, by NVIDIA's NCCL (libnccl.so.2, 2.17 or newer, opened
/// at run time), on a communication stream a device. A call returns when its work is done on all
/// devices, so that an error or a hang is its own; one that takes longer than `timeout` seconds is
/// aborted and throws CommTimeoutError. Each device needs a GPU of its own; where they share one,
/// NCCL 2.30 and newer, which can do that as an experiment, has to be asked for with
/// NCCL_MULTI_RANK_GPU_ENABLE=1. On emulated devices a stand-in takes the library's place.
/// Throws DeviceError (no library, too old, no CUDA device, a GPU twice), ArgumentError (an empty
/// list, a timeout that is not positive), CommError where the library refuses, CommTimeoutError.
[[nodiscard]] std::unique_ptr<Communicator> make_nccl_communicator(std::vector<Device> devices,
                                                                   double timeout = 600);

/// Which communicator DataParallel and its primitives use.
enum class CommunicatorKind : std::uint8_t {
  /// nccl between CUDA devices that are GPUs of their own, where the library opens; else local
  automatic,
  local,
  nccl,  ///< nccl, and DeviceError where that cannot be
};
struct CommunicatorOptions {
  CommunicatorKind kind = CommunicatorKind::automatic;
  double timeout = 600;  ///< seconds that a collective over NCCL may take
};

/// What set_communicator_options said last, else the environment: BRAID_COMMUNICATOR (automatic,
/// local, nccl) and BRAID_COMMUNICATOR_TIMEOUT (seconds). Throws ArgumentError if these are
/// something else.
[[nodiscard]] CommunicatorOptions communicator_options();
/// For all that is made from now on; those that were kept are given up, as by reset_communicators.
/// Throws ArgumentError for a timeout that is not positive.
void set_communicator_options(const CommunicatorOptions& options);

/// The communicator over these devices: the one place where it is chosen. Those of NCCL are kept
/// for the process, also after an error, so that nobody goes on unaware; any thread may use them.
/// Throws as the functions that make them; ArgumentError (the options).
[[nodiscard]] std::shared_ptr<Communicator> communicator_over(std::span<const Device> devices);
/// Forgets the communicators that communicator_over has kept, so that the next use makes new ones:
/// what to do after a CommError. They end with their last user.
void reset_communicators();

}  // namespace braid::parallel
