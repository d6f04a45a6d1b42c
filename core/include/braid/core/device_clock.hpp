#pragma once
#include <memory>

#include <braid/core/device.hpp>

namespace braid {

class Event;

/// Implemented, in addition to DeviceBackend, by devices that queue work: the times at points of
/// their streams, measured by the device itself.
class DeviceClock {
 public:
  /// An event that stores the time at which it completes; see Stream::record. Throws CudaError,
  /// DeviceLostError.
  [[nodiscard]] virtual std::unique_ptr<Event> make_timed_event() = 0;
  /// Seconds from one event to another. This device must have made and recorded both. Blocks until
  /// both have completed. Throws CudaError, DeviceLostError.
  [[nodiscard]] virtual double seconds_between(const Event& from, const Event& to) = 0;
  /// Index of the GPU that the logical device is on; -1 if the device is emulated on the host, so
  /// that its times say nothing about a GPU.
  [[nodiscard]] virtual int real_gpu() const noexcept = 0;

 protected:
  ~DeviceClock() = default;
};

/// Returns the clock of a device, or null if its work is done when a call returns (the CPU), so
/// that the host's clock is enough. Throws DeviceError for a device that does not exist.
[[nodiscard]] DeviceClock* device_clock(Device device);

}  // namespace braid
