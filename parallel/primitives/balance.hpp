#pragma once
#include <span>
#include <string>

#include <braid/core/native_device.hpp>

namespace braid::parallel {

/// What to tell about GPUs of which one will hold up another: the one with the least memory has
/// less than 75 % of the most, or, where that is not so, of the multiprocessors. Empty where they
/// are alike.
[[nodiscard]] std::string imbalance(std::span<const Device> devices,
                                    std::span<const NativeDevice::Size> sizes);

/// Warns of that, once per process. It asks the driver: not for every step.
void warn_of_imbalance(std::span<const Device> devices);

}  // namespace braid::parallel
