#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// The kind of a device. Emulated CUDA devices are `cuda` too.
enum class DeviceType : std::uint8_t { cpu, cuda };

/// A logical device: a type and an index, such as `cpu:0` or `cuda:1`. Cheap to copy. Each device
/// has separate memory accounting, a current stream and a share of the worker threads. Apart from
/// copies, an operation on tensors of two devices throws DeviceError, even if both devices use the
/// same memory.
///
///     const Tensor t = ones({3}, {.device = "cuda:0"});
class Device {
 public:
  constexpr Device() noexcept = default;
  /// An index outside ±32767 is clamped: it must not wrap around to a device that exists.
  constexpr Device(DeviceType type, int index = 0) noexcept
      : type_(type),
        index_(static_cast<std::int16_t>(index < -kLargestIndex  ? -kLargestIndex
                                         : index > kLargestIndex ? kLargestIndex
                                                                 : index)) {}
  /// Parses `cpu`, `cpu:1`, `cuda`, `cuda:0`. Throws DeviceError for any other text and for a null
  /// pointer. Does not check whether the device exists.
  Device(std::string_view name);
  Device(const char* name) : Device(named(name)) {}
  Device(const std::string& name) : Device(std::string_view(name)) {}

  [[nodiscard]] constexpr DeviceType type() const noexcept { return type_; }
  [[nodiscard]] constexpr int index() const noexcept { return index_; }
  [[nodiscard]] constexpr bool is_cpu() const noexcept { return type_ == DeviceType::cpu; }
  [[nodiscard]] constexpr bool is_cuda() const noexcept { return type_ == DeviceType::cuda; }
  [[nodiscard]] std::string str() const;  ///< as it prints: "cuda:1"
  friend constexpr bool operator==(const Device&, const Device&) noexcept = default;
  friend constexpr auto operator<=>(const Device&, const Device&) noexcept = default;
  friend std::ostream& operator<<(std::ostream& out, const Device& device);

 private:
  static constexpr int kLargestIndex = 32767;
  static std::string_view named(const char* name);
  DeviceType type_ = DeviceType::cpu;
  std::int16_t index_ = 0;
};

/// Returns the best available device: the first CUDA device, else cpu:0. The environment variable
/// BRAID_DEVICE overrides it. Factories do not use it: set_default_device(best_device()).
[[nodiscard]] Device best_device();
/// Does not compile: the name is best_device(). get_default_device() is the factories' device.
template <class T = void> Device default_device() {
  static_assert(!sizeof(T*), "braid: default_device() is now best_device()");
  return {};
}
/// All devices of the best device's type, ordered by index.
[[nodiscard]] std::vector<Device> devices();
[[nodiscard]] std::vector<Device> devices(DeviceType type);
/// Number of devices of the best device's type.
[[nodiscard]] int device_count();
[[nodiscard]] int device_count(DeviceType type);

/// Sets the device on which factories (zeros, tensor, arange, rand, …) create tensors, and layers
/// their parameters, if the options name no device. At first it is cpu:0. It holds for all threads
/// of the process, those of data loaders included, except where a DefaultDeviceGuard exists. It
/// does not affect from_blob, files, the library's datasets, numbers that collate combines, and the
/// state of optimizers and schedules, which are on cpu:0.
///
/// Replicas  a factory in a replica's forward creates on the default device too, not on the
///           replica's device, as in PyTorch's DataParallel: name x.device(), or use zeros_like(x)
///
/// Throws    DeviceError for a device that does not exist
///
///     set_default_device(best_device());
///     nn::Linear model(784, 10);           // on the GPU if there is one
void set_default_device(Device device);
/// Returns the device of the thread's innermost DefaultDeviceGuard, else that of
/// set_default_device, else cpu:0.
[[nodiscard]] Device get_default_device() noexcept;

/// While it exists, `device` is the default device of its thread, whatever set_default_device says.
/// Work that is divided over devices, the replicas of a DataParallel and a backward, continues with
/// the guard of the thread that called it; other threads, such as those of a data loader, do not
/// see it. The destructor restores what the thread had before. Guards nest: destroy them in the
/// reverse order.
///
///     const DefaultDeviceGuard guard(best_device());
///     nn::Linear model(784, 10);           // on the GPU if there is one
class DefaultDeviceGuard {
 public:
  /// Throws DeviceError for a device that does not exist.
  explicit DefaultDeviceGuard(Device device);
  ~DefaultDeviceGuard();
  DefaultDeviceGuard(const DefaultDeviceGuard&) = delete;
  DefaultDeviceGuard& operator=(const DefaultDeviceGuard&) = delete;

 private:
  std::optional<Device> before_;
};

/// Sets the number of logical CPU devices (default 1, or BRAID_CPU_DEVICES). Must be called before
/// the first use of any device.
///
/// Throws    DeviceError if devices are in use already, or unless count is in 1 … 64
void set_cpu_device_count(int count);

/// Number of threads that each CPU device computes with. Default: max(1, cores / CPU devices), or
/// BRAID_THREADS. Results do not depend on it.
[[nodiscard]] int num_threads();
/// Sets it, from the next operation on.
///
/// Throws    ArgumentError unless 1 <= count <= 256
void set_num_threads(int count);

/// Blocks until all work is done that was queued on the device's default stream and on the calling
/// thread's current stream, and rethrows its first error. For other streams use
/// Stream::synchronize.
///
/// Throws    DeviceError for a device that does not exist
void synchronize(Device device);

}  // namespace braid
