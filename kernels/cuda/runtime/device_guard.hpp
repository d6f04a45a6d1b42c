#pragma once

namespace braid {

class Device;

namespace cuda {

class Gpu;

/// Makes a GPU the calling thread's current one for a scope. The constructor throws CudaError or
/// DeviceLostError; the destructor never throws. On the library's own threads the GPU stays
/// current, because a launch on a GPU other than the first would otherwise cost two driver calls.
class DeviceGuard {
 public:
  DeviceGuard(Gpu& gpu, Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;  // to be restored; -1: nothing to restore
};
/// Marks the calling thread as the library's own.
void own_thread() noexcept;

}  // namespace cuda
}  // namespace braid
