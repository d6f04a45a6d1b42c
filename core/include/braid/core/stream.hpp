#pragma once
#include <memory>

#include <braid/core/device.hpp>

// Queues of work and points in them. A program needs them where work of one device is to overlap
// with other work of the same device; without them everything of a device is in the order of the
// program.
namespace braid {

class Tensor;

/// A point in a stream's work; see make_event.
class Event {
 public:
  virtual ~Event() = default;
  /// True when everything recorded before it is done, and before it was ever recorded.
  [[nodiscard]] virtual bool done() const = 0;
  /// The host blocks until it is. Nothing to wait for where work is done when its call returns.
  virtual void synchronize() const {}
};

/// An in-order queue of work on one device; see make_stream. On the CPU work runs at once on the
/// calling thread.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  virtual ~Stream() = default;
  /// event fires when all that is queued so far is done
  virtual void record(Event& event) = 0;
  /// later work here starts after event; between CUDA streams the host never blocks
  virtual void wait(const Event& event) = 0;
  virtual void wait_for(Stream& earlier) {
    earlier.synchronize();
  }  ///< the same for all queued on `earlier` so far; if it throws, that is over or the device lost
  virtual void synchronize() = 0;  ///< the host blocks; rethrows the stream's first error
  /// cudaStream_t, or null: on the CPU, and on CUDA before the first use
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  [[nodiscard]] Device device() const noexcept { return device_; }

 protected:
  explicit Stream(Device device) noexcept : device_(device) {}

 private:
  Device device_;
};

/// The calling thread's current stream on the device: where ops queue their work, and whose order
/// their memory follows. The device's own stream, or that of the innermost StreamGuard. Throws
/// DeviceError for a device that does not exist.
[[nodiscard]] Stream& current_stream(Device device);

/// A stream of its own on the device. On CUDA its work may overlap with that of every other stream,
/// so a hand-over of tensors needs an order: wait_for, or record and wait. Kept alive by the
/// tensors that were made on it. Throws DeviceError, CudaError.
[[nodiscard]] std::shared_ptr<Stream> make_stream(Device device);
/// An event for streams of the device; any stream may wait for it. Throws DeviceError.
[[nodiscard]] std::unique_ptr<Event> make_event(Device device);

/// Makes a stream the current one of its device for the calling thread while it lives, and for the
/// workers that continue the thread's work (parallel_apply, backward). Guards nest: they end in the
/// opposite order of their making. Nothing is waited for, at neither end. Throws ArgumentError for
/// a null pointer.
///
///     const auto side = make_stream(device);
///     side->wait_for(current_stream(device));    // x is ready
///     Tensor y;
///     {
///       const StreamGuard guard(side);
///       y = matmul(x, w);
///       record_stream(x, *side);                 // x may go before the product is done
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

/// The tensor's memory is used on a stream other than the one it was made on: when the tensor goes,
/// its memory is used again only after all that is queued there by then. Needed where the tensor
/// may go before the two streams are in order. Nothing to do on its own stream, for memory of
/// others, and on the CPU. Throws DeviceError for a stream of another device.
void record_stream(const Tensor& tensor, Stream& stream);

}  // namespace braid
