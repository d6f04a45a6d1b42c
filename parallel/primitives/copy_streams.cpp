#include "primitives/copy_streams.hpp"

#include <mutex>

#include <braid/core/backend.hpp>

namespace braid::parallel {

namespace {

/// One stream per device, created at its first use.
class Streams {
 public:
  const std::shared_ptr<Stream>& of(Device device) {
    (void)device_context(device);  // throws if the device does not exist
    Made& own = made_[static_cast<int>(device.type()) * kDevices + device.index()];
    const std::lock_guard lock(own.mutex);
    if (!own.stream) own.stream = make_stream(device);
    return own.stream;
  }

 private:
  static constexpr int kTypes = 2, kDevices = 64;
  struct Made {
    std::mutex mutex;
    std::shared_ptr<Stream> stream;
  };
  Made made_[kTypes * kDevices];
};

}  // namespace

const std::shared_ptr<Stream>& copy_stream(Device device) {
  static Streams* const streams = new Streams;  // never destroyed: tensors may be freed after main
  return streams->of(device);
}

const std::shared_ptr<Stream>& communication_stream(Device device) {
  static Streams* const streams = new Streams;
  return streams->of(device);
}

Tensor copy_in_background(const Tensor& x, Device device) {
  if (x.device() == device || device_context(device).host_memory) return x.to(device);
  const std::shared_ptr<Stream>& background = copy_stream(device);
  Stream& current = current_stream(device);
  Tensor copy;
  {
    const StreamGuard guard(background);
    copy = x.to(device);
  }
  current.wait_for(*background);
  record_stream(copy, current);
  return copy;
}

}  // namespace braid::parallel
