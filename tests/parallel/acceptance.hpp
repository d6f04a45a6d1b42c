#pragma once
// What the acceptance tests share. T01 to T36 are the tests of PyTorch's test_data_parallel.py by
// number, C1 to C9 those of LibTorch's parallel.cpp. Theirs are of two GPUs and the host; these run
// on whatever devices there are, and leave out what needs two where there is one.
#include <optional>
#include <utility>
#include <vector>

#include "group.hpp"

namespace braid::test {

/// (0), (0, 1), (1, 0), and all where there are more: the lists that hold only devices that exist.
inline std::vector<std::vector<Device>> orders() {
  std::vector<std::vector<Device>> list{{device(0)}};
  if (device_count() < 2) return list;
  list.push_back({device(0), device(1)});
  list.push_back({device(1), device(0)});
  if (device_count() > 2) list.push_back(devices());
  return list;
}
inline std::vector<std::vector<Device>> orders_of_two() {
  if (device_count() < 2) return {};
  return {{device(0), device(1)}, {device(1), device(0)}};
}

/// What the tests call the CPU: the host where the devices are GPUs, and else one of them.
inline Device host() { return Device("cpu"); }
/// A device that is neither device(0) nor device(1), if there is one.
inline std::optional<Device> third() {
  if (!on_cpu()) return host();
  if (device_count() > 2) return device(2);
  return {};
}

template <class M> M placed_on(M module, Device at) {
  to(module, at);
  return module;
}

}  // namespace braid::test
