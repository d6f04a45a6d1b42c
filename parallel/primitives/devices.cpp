#include <braid/parallel/devices.hpp>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>

namespace braid::parallel {

DeviceList::DeviceList(const std::vector<int>& indices) {
  const DeviceType type = best_device().type();
  for (const int index : indices) {
    if (index < 0 || index >= device_count(type))
      // Checked here, because a Device holds 16 bits and a larger index would wrap.
      throw DeviceError(
          str("devices: expected indices from 0 to ", device_count(type) - 1, ", got ", index));
    list_.emplace_back(type, index);
  }
}

void check_devices(const char* op, std::span<const Device> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    (void)device_context(devices[i]);  // throws for a device that does not exist
    for (std::size_t j = 0; j < i; ++j)
      if (devices[j] == devices[i])
        throw DeviceError(str(op, ": expected each device once, got ", devices[i], " twice"));
  }
}

}  // namespace braid::parallel
