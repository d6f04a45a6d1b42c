#pragma once
#include <cstddef>

#include <braid/core/backend.hpp>

namespace braid::parallel {

/// Queues a contiguous copy on the current stream of the device whose backend can access both
/// sides: the one that is not a CPU device, if there is one.
inline void copy_flat(void* to, Device to_device, const void* from, Device from_device,
                      std::size_t bytes) {
  if (bytes == 0) return;
  const Device by = to_device.type() == DeviceType::cpu ? from_device : to_device;
  device_context(by).backend->copy({to, to_device, from, from_device, bytes}, current_stream(by));
}

}  // namespace braid::parallel
