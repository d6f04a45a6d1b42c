#pragma once

namespace braid {

class Device;

namespace cuda {

class Gpu;

/// Makes a GPU the calling thread's current one for a scope. Throws CudaError or DeviceLostError;
/// its end never throws.
class DeviceGuard {
 public:
  DeviceGuard(Gpu& gpu, Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;  // to be restored; -1: it was this one
};

}  // namespace cuda
}  // namespace braid
