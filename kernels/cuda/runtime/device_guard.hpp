#pragma once

namespace braid {

class Device;

namespace cuda {

class Gpu;

/// Makes a GPU the calling thread's current one for a scope. Throws CudaError or DeviceLostError;
/// its end never throws. On the library's own threads it stays current: a launch on another GPU
/// than the first would cost two calls of the driver else.
class DeviceGuard {
 public:
  DeviceGuard(Gpu& gpu, Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;  // to be restored; -1: it was this one, or nobody asks
};
/// The calling thread is the library's own from now on.
void own_thread() noexcept;

}  // namespace cuda
}  // namespace braid
