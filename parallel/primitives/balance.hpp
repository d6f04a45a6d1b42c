#pragma once
#include <span>
#include <string>

#include <braid/core/native_device.hpp>

namespace braid::parallel {

/// Returns a warning if one GPU will slow down another: if the smallest memory is below 75 % of the
/// largest or, failing that, the smallest number of multiprocessors is below 75 % of the largest.
/// Otherwise returns an empty string.
[[nodiscard]] std::string imbalance(std::span<const Device> devices,
                                    std::span<const NativeDevice::Size> sizes);

/// Prints that warning, once per process. Queries the driver, so do not call it for every step.
void warn_of_imbalance(std::span<const Device> devices);

}  // namespace braid::parallel
