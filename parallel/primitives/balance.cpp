#include "primitives/balance.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include <braid/core/error.hpp>

namespace braid::parallel {

std::string imbalance(std::span<const Device> devices, std::span<const NativeDevice::Size> sizes) {
  const auto compare = [&](const char* what, auto amount) -> std::string {
    const auto less = [&](const NativeDevice::Size& a, const NativeDevice::Size& b) {
      return amount(a) < amount(b);
    };
    const auto [weak, strong] = std::minmax_element(sizes.begin(), sizes.end(), less);
    if (weak == sizes.end() || amount(*weak) >= 0.75 * amount(*strong)) return {};
    return str("DataParallel: ", devices[static_cast<std::size_t>(weak - sizes.begin())],
               " has less than 75 % of the ", what, " of ",
               devices[static_cast<std::size_t>(strong - sizes.begin())],
               " and will hold it up: leave it out of the list of devices (or of "
               "CUDA_VISIBLE_DEVICES), or give it fewer rows (DataParallelOptions::weights)");
  };
  std::string text =
      compare("memory", [](const NativeDevice::Size& s) { return static_cast<double>(s.memory); });
  if (text.empty())
    text = compare("multiprocessors", [](const NativeDevice::Size& s) {
      return static_cast<double>(s.multiprocessors);
    });
  return text;
}

void warn_of_imbalance(std::span<const Device> devices) {
  static std::atomic<bool> warned{false};
  if (devices.size() < 2 || warned.load(std::memory_order_relaxed)) return;
  std::vector<NativeDevice::Size> sizes;
  try {
    for (const Device device : devices) {
      const NativeDevice* const native = native_device(device);
      if (!native) return;  // CPU devices are parts of one machine
      sizes.push_back(native->size());
    }
  } catch (const Error&) {  // a device is lost: its next use reports it
    return;
  }
  if (const std::string text = imbalance(devices, sizes); !text.empty() && !warned.exchange(true))
    warn(text);
}

}  // namespace braid::parallel
