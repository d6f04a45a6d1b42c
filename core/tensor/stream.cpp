#include <braid/core/stream.hpp>

#include <utility>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/native_device.hpp>

namespace braid {

std::shared_ptr<Stream> make_stream(Device device) {
  return device_context(device).backend->make_stream();
}

std::unique_ptr<Event> make_event(Device device) {
  return device_context(device).backend->make_event();
}

NativeDevice* native_device(Device device) {
  return dynamic_cast<NativeDevice*>(device_context(device).backend);
}

StreamGuard::StreamGuard(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), outer_(thread_state().streams) {
  if (!stream_) throw ArgumentError("StreamGuard: expected a stream, got none");
  thread_state().streams = this;
}

StreamGuard::~StreamGuard() { thread_state().streams = outer_; }

void record_stream(const Tensor& tensor, Stream& stream) {
  tensor.storage()->record_stream(stream);
}

}  // namespace braid
