#pragma once
#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include <braid/core/worker.hpp>

namespace braid::parallel {

/// Work on less memory than this is done faster than a sleeping thread wakes.
inline constexpr std::size_t kWakeBytes = std::size_t{1} << 20;

/// f(i) for every device, each on its device's worker, or one after the other on the calling thread if `bytes`, the memory that all of them move, is little.
/// All are finished when it returns or throws; the exception is that of the lowest i.
template <class F>
void for_each_device(std::span<const Device> devices, std::size_t bytes, F&& f) {
  if (devices.size() == 1 || bytes < kWakeBytes) {
    for (std::size_t i = 0; i < devices.size(); ++i) f(i);
    return;
  }
  std::vector<std::exception_ptr> errors(devices.size());
  run_on_devices(devices, [&](std::size_t i) {
    try {
      f(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

}  // namespace braid::parallel
