#pragma once
#include <memory>

#include <braid/core/device.hpp>

// Streams and events. A program needs them only to overlap work of a device with other work of the
// same device. Without them all work of a device runs in the order of the program.
namespace braid {

class Tensor;

/// A point in the work of a stream; see make_event.
class Event {
 public:
  virtual ~Event() = default;
  /// True if all work queued before the event was recorded is done, or if it was never recorded.
  [[nodiscard]] virtual bool done() const = 0;
  /// Blocks the host until done(). Does nothing if work is done when its call returns (the CPU).
  virtual void synchronize() const {}
};

/// An in-order queue of work on one device; see make_stream. On the CPU, work runs immediately on
/// the calling thread.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  virtual ~Stream() = default;
  /// The event completes when all work queued so far is done.
  virtual void record(Event& event) = 0;
  /// Later work on this stream waits for the event. Between CUDA streams the host never blocks.
  virtual void wait(const Event& event) = 0;
  /// Later work on this stream waits for all work queued on `earlier` so far. If this throws, that
  /// work is done or the device is lost.
  virtual void wait_for(Stream& earlier) {
    earlier.synchronize();
  }  ///< by default the host blocks until then; on CUDA only this stream waits
  virtual void synchronize() = 0;  ///< blocks the host; rethrows the stream's first error
  /// The cudaStream_t; null on the CPU, and on CUDA before the stream is first used.
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  [[nodiscard]] Device device() const noexcept { return device_; }

 protected:
  explicit Stream(Device device) noexcept : device_(device) {}

 private:
  Device device_;
};

/// Returns the calling thread's current stream on the device: that of the innermost StreamGuard,
/// else the device's default stream. Ops queue their work on it, and memory is allocated and reused
/// in the order of its work. Throws DeviceError for a device that does not exist.
[[nodiscard]] Stream& current_stream(Device device);

/// Makes a new stream on the device. On CUDA its work may overlap with the work of every other
/// stream. To use a tensor on two streams, order them with wait_for, or with record and wait.
/// Tensors made on the stream keep it alive. Throws DeviceError, CudaError.
[[nodiscard]] std::shared_ptr<Stream> make_stream(Device device);
/// Makes an event for streams of the device; any stream may wait for it. Throws DeviceError.
[[nodiscard]] std::unique_ptr<Event> make_event(Device device);

/// While a guard exists, its stream is the current one of the stream's device, for the calling
/// thread and for the workers that continue the thread's work (parallel_apply, backward). Guards
/// nest: destroy them in the reverse order. Neither construction nor destruction waits for work.
/// Throws ArgumentError for a null pointer.
///
///     const auto side = make_stream(device);
///     side->wait_for(current_stream(device));    // x is ready
///     Tensor y;
///     {
///       const StreamGuard guard(side);
///       y = matmul(x, w);
///       record_stream(x, *side);                 // x may be destroyed before the product is done
///     }
///     …                                          // other work of the device, at the same time
///     current_stream(device).wait_for(*side);    // y is ready
///     record_stream(y, current_stream(device));
class StreamGuard {
 public:
  explicit StreamGuard(std::shared_ptr<Stream> stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  [[nodiscard]] const std::shared_ptr<Stream>& stream() const noexcept { return stream_; }
  [[nodiscard]] const StreamGuard* outer() const noexcept { return outer_; }

 private:
  std::shared_ptr<Stream> stream_;
  const StreamGuard* outer_;
};

/// Tells the allocator that the tensor's memory is used on a stream other than the one it was made
/// on. After the tensor is destroyed, the memory is reused only when all work that was queued on
/// that stream before the destruction is done. Needed if the tensor may be destroyed before the two
/// streams are ordered. Has no effect on the tensor's own stream, for memory that Braid does not
/// own, and on the CPU. Throws DeviceError for a stream of another device.
void record_stream(const Tensor& tensor, Stream& stream);

}  // namespace braid
