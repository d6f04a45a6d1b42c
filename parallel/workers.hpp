#pragma once
#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include <braid/core/worker.hpp>

namespace braid::parallel {

/// Below this amount of memory, working directly is faster than waking a sleeping thread.
inline constexpr std::size_t kWakeBytes = std::size_t{1} << 20;

/// Returns each device of a list once, in the order of first occurrence.
[[nodiscard]] inline std::vector<Device> distinct(std::span<const Device> devices) {
  std::vector<Device> once;
  for (const Device d : devices)
    if (std::find(once.begin(), once.end(), d) == once.end()) once.push_back(d);
  return once;
}

/// Calls f(i) for every index in the list, each on its device's worker; calls on one device run in
/// sequence. If `bytes`, the memory that all calls move together, is small, all run on the calling
/// thread. All have ended when it returns or throws. Rethrows the exception of the lowest i.
template <class F> void for_each_device(std::span<const Device> devices, std::size_t bytes, F&& f) {
  if (devices.size() == 1 || bytes < kWakeBytes) {
    for (std::size_t i = 0; i < devices.size(); ++i) f(i);
    return;
  }
  std::vector<std::exception_ptr> errors(devices.size());
  const std::vector<Device> workers = distinct(devices);
  run_on_devices(workers, [&](std::size_t worker) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i] != workers[worker]) continue;
      try {
        f(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

}  // namespace braid::parallel
