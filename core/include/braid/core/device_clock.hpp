#pragma once
#include <memory>

#include <braid/core/device.hpp>

namespace braid {

class Event;

/// What a backend's device offers beside DeviceBackend where work is queued: the time at points of
/// its streams, taken by the device itself.
class DeviceClock {
 public:
  /// An event that keeps the time at which it fires; see Stream::record. Throws CudaError,
  /// DeviceLostError.
  [[nodiscard]] virtual std::unique_ptr<Event> make_timed_event() = 0;
  /// Seconds from one event of this device to another, both made here and recorded; blocks until
  /// both have fired. Throws CudaError, DeviceLostError.
  [[nodiscard]] virtual double seconds_between(const Event& from, const Event& to) = 0;
  /// The number of the GPU that the logical device is on; -1 where it is emulated on the host, so
  /// that its times say nothing about a GPU.
  [[nodiscard]] virtual int real_gpu() const noexcept = 0;

 protected:
  ~DeviceClock() = default;
};

/// The clock of a device; null where work is done when its call returns, so that the host's clock
/// tells all (the CPU).
/// Throws DeviceError for a device that does not exist.
[[nodiscard]] DeviceClock* device_clock(Device device);

}  // namespace braid
