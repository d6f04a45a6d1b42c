#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include <braid/core/device.hpp>

namespace braid::parallel {

/// The devices of a group: the result of `devices()`, or a list such as `{0, 1}` (indices of the
/// best device's type), `{"cpu:0", "cpu:1"}` or `{}`.
class DeviceList {
 public:
  DeviceList() = default;
  DeviceList(std::vector<Device> list) : list_(std::move(list)) {}
  DeviceList(std::initializer_list<Device> list) : list_(list) {}
  DeviceList(std::initializer_list<int> indices) : DeviceList(std::vector<int>(indices)) {}
  DeviceList(const std::vector<int>& indices);
  [[nodiscard]] const std::vector<Device>& list() const noexcept { return list_; }

 private:
  std::vector<Device> list_;
};

/// Throws DeviceError unless every device exists and is listed only once. The text begins with
/// `op`: `op: expected each device once, got cpu:1 twice`.
void check_devices(const char* op, std::span<const Device> devices);

}  // namespace braid::parallel
