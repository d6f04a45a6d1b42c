#pragma once
#include <cstddef>

#include <braid/core/device.hpp>

// What the GPU vendor's libraries (NCCL, cuBLAS) need to know about a device beyond the device
// interface (backend.hpp), without their headers: see docs/decisions/0005.
namespace braid {

/// Implemented by the backends of GPUs, in addition to DeviceBackend.
class NativeDevice {
 public:
  /// A function as dlsym returns it; its name determines the real type.
  using Function = void (*)();

  /// Properties of the GPU.
  struct Size {
    std::size_t memory = 0;  ///< bytes
    int multiprocessors = 0;
  };

  /// Index of the GPU, which its logical devices share.
  [[nodiscard]] virtual int gpu() const noexcept = 0;
  /// Throws CudaError, DeviceLostError.
  [[nodiscard]] virtual Size size() const = 0;
  /// Makes the GPU the calling thread's current one; it stays current after the call. Throws
  /// CudaError, DeviceLostError.
  virtual void make_current() = 0;
  /// Returns, on emulated devices, the fake of the library function `name`; null if the caller must
  /// open the real library.
  [[nodiscard]] virtual Function stand_in(const char* name) const noexcept = 0;

 protected:
  ~NativeDevice() = default;
};

/// Returns null for a CPU device. Throws DeviceError for a device that does not exist.
[[nodiscard]] NativeDevice* native_device(Device device);

}  // namespace braid
