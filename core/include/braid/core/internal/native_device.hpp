#pragma once
#include <cstddef>
#include <string>

#include <braid/core/device.hpp>

// What the GPU vendor's libraries (NCCL, cuBLAS) need to know about a device beyond the device
// interface (backend.hpp), without their headers: see docs/decisions/0008.
namespace braid {

/// Implemented by the backends of GPUs, in addition to DeviceBackend.
class NativeDevice {
 public:
  /// Properties of the GPU.
  struct Size {
    std::size_t memory = 0;  ///< bytes
    int multiprocessors = 0;
  };

  /// Index of the GPU, which its logical devices share.
  [[nodiscard]] virtual int gpu() const noexcept = 0;
  /// The GPU's PCI address, `0000:17:00.0`: the same in all processes of a machine. Throws
  /// CudaError, DeviceLostError.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Throws CudaError, DeviceLostError.
  [[nodiscard]] virtual Size size() const = 0;
  /// Makes the GPU the calling thread's current one; it stays current after the call. Throws
  /// CudaError, DeviceLostError.
  virtual void make_current() = 0;

 protected:
  ~NativeDevice() = default;
};

/// Returns null for a CPU device. Throws DeviceError for a device that does not exist.
[[nodiscard]] NativeDevice* native_device(Device device);

}  // namespace braid
