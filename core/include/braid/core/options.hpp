#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>

namespace braid {

/// Options of the tensor factories, as an aggregate. Defaults: the default device
/// (set_default_device; cpu:0 at first), float32 (or the dtype that the factory documents), no
/// gradient.
///
///     zeros({2, 3}, {.dtype = DType::int64});
struct FactoryOptions {
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
  bool requires_grad = false;
  /// for random factories: use this seed for this tensor only; the global stream does not advance
  std::optional<std::uint64_t> seed = {};
  /// in page-locked memory of the host, as Tensor::pin_memory; throws DeviceError for a device that
  /// is no CPU, and without a CUDA device
  bool pinned_memory = false;
};

/// LibTorch's form of the same options, built step by step. Converts to FactoryOptions. Every
/// factory accepts it, and a dtype or a device in its place.
///
///     zeros({2, 3}, kInt64);
///     zeros({2, 3}, dtype(kFloat64).device(kCPU).requires_grad(true));
///     zeros({2, 3}, x.options().dtype(kBool));
class TensorOptions {
 public:
  TensorOptions() noexcept = default;
  TensorOptions(DType dtype) noexcept { options_.dtype = dtype; }
  TensorOptions(Device device) noexcept { options_.device = device; }
  TensorOptions(DeviceType device) noexcept : TensorOptions(Device(device)) {}
  TensorOptions(const FactoryOptions& options) noexcept : options_(options) {}

  // Copies with one option changed.
  [[nodiscard]] TensorOptions dtype(DType dtype) const noexcept {
    TensorOptions changed = *this;
    changed.options_.dtype = dtype;
    return changed;
  }
  [[nodiscard]] TensorOptions device(Device device) const noexcept {
    TensorOptions changed = *this;
    changed.options_.device = device;
    return changed;
  }
  [[nodiscard]] TensorOptions device(DeviceType type, int index) const noexcept {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions requires_grad(bool on) const noexcept {
    TensorOptions changed = *this;
    changed.options_.requires_grad = on;
    return changed;
  }
  [[nodiscard]] TensorOptions pinned_memory(bool on) const noexcept {
    TensorOptions changed = *this;
    changed.options_.pinned_memory = on;
    return changed;
  }

  // What a factory would use.
  [[nodiscard]] DType dtype() const noexcept { return options_.dtype.value_or(DType::float32); }
  [[nodiscard]] Device device() const noexcept {
    return options_.device ? *options_.device : get_default_device();
  }
  [[nodiscard]] bool requires_grad() const noexcept { return options_.requires_grad; }
  [[nodiscard]] bool pinned_memory() const noexcept { return options_.pinned_memory; }
  [[nodiscard]] bool has_dtype() const noexcept { return options_.dtype.has_value(); }
  [[nodiscard]] bool has_device() const noexcept { return options_.device.has_value(); }

  operator FactoryOptions() const noexcept { return options_; }

 private:
  FactoryOptions options_;
};

/// TensorOptions with one option set.
[[nodiscard]] inline TensorOptions dtype(DType dtype) noexcept { return dtype; }
[[nodiscard]] inline TensorOptions device(Device device) noexcept { return device; }
[[nodiscard]] inline TensorOptions device(DeviceType type, int index) noexcept {
  return Device(type, index);
}
[[nodiscard]] inline TensorOptions requires_grad(bool on = true) noexcept {
  return TensorOptions().requires_grad(on);
}

namespace detail {
/// The argument of a factory's second form. Braces are a FactoryOptions.
template <class T>
concept OptionsInLibTorchsForm = std::same_as<T, TensorOptions> || std::same_as<T, DType> ||
                                 std::same_as<T, Device> || std::same_as<T, DeviceType>;
}  // namespace detail

}  // namespace braid
