#pragma once
#include <cstddef>

#include <braid/core/device.hpp>

// What libraries of a GPU's vendor want of a device beyond the seam (backend.hpp), without their
// headers: see docs/decisions/0005.
namespace braid {

/// A device that such a library can work on: the backends of GPUs have it beside DeviceBackend.
class NativeDevice {
 public:
  /// A function whose type its name tells, as dlsym gives it.
  using Function = void (*)();

  /// What the GPU below has.
  struct Size {
    std::size_t memory = 0;  ///< bytes
    int multiprocessors = 0;
  };

  /// The number of the GPU below, which its logical devices share.
  [[nodiscard]] virtual int gpu() const noexcept = 0;
  /// Throws CudaError, DeviceLostError.
  [[nodiscard]] virtual Size size() const = 0;
  /// Makes that GPU the calling thread's current one, for good. Throws CudaError, DeviceLostError.
  virtual void make_current() = 0;
  /// On emulated devices the function that stands in for `name` of such a library; null where the
  /// library itself is to be opened.
  [[nodiscard]] virtual Function stand_in(const char* name) const noexcept = 0;

 protected:
  ~NativeDevice() = default;
};

/// Null for a device of the CPU. Throws DeviceError for one that does not exist.
[[nodiscard]] NativeDevice* native_device(Device device);

}  // namespace braid
