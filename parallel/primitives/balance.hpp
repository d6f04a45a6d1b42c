#pragma once
#include <span>
#include <string>

#include <braid/core/native_device.hpp>

namespace braid::parallel {

/// Returns a warning if one GPU will slow down another. This is so if the least memory is below 75
/// % of the most, or else if the fewest multiprocessors are below 75 % of the most. Returns an
/// empty string otherwise.
[[nodiscard]] std::string imbalance(std::span<const Device> devices,
                                    std::span<const NativeDevice::Size> sizes);

/// Prints that warning, once per process. Queries the driver, so do not call it for every step.
void warn_of_imbalance(std::span<const Device> devices);

}  // namespace braid::parallel
