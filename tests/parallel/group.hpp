#pragma once
// What the tests of parallel share: groups of devices, and a small model.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/device.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/random.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/walks.hpp>

#include "support/tensors.hpp"

namespace braid::test {

/// The first n devices.
inline std::vector<Device> group(int n) {
  std::vector<Device> list = devices();
  list.resize(static_cast<std::size_t>(n));
  return list;
}
inline Device device(int i) { return devices().at(static_cast<std::size_t>(i)); }

/// How often this process was warned with exactly this text.
[[nodiscard]] int warnings_with(std::string_view text);

/// A text that names CPU devices, about the devices that the tests run on.
inline std::string here(std::string text) {
  if (device(0).type() == DeviceType::cpu) return text;
  for (std::size_t at = text.find("cpu:"); at != std::string::npos; at = text.find("cpu:", at)) text.replace(at, 4, "cuda:");
  return text;
}

inline std::vector<double> numbers(const Tensor& t) { return t.to_vector<double>(); }

/// Two layers, a buffer that counts the rows it saw in place, and a plain field.
struct Net : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 3};
  nn::Buffer seen{zeros({1})};
  mutable int calls = 0;
  Tensor operator()(const Tensor& x) const {
    ++calls;
    seen.add_(static_cast<double>(x.size(0)));
    return fc2(tanh(fc1(x)));
  }
  BRAID_FIELDS(fc1, fc2, seen)
};

/// The tests of parallel: what they make without naming a device is on the first of the devices, be these of the CPU or of CUDA.
namespace on_first {

inline TensorOptions placed(TensorOptions options) {
  if (!options.device) options.device = device(0);
  return options;
}
inline Tensor zeros(const Shape& shape, const TensorOptions& options = {}) { return braid::zeros(shape, placed(options)); }
inline Tensor ones(const Shape& shape, const TensorOptions& options = {}) { return braid::ones(shape, placed(options)); }
inline Tensor empty(const Shape& shape, const TensorOptions& options = {}) { return braid::empty(shape, placed(options)); }
inline Tensor full(const Shape& shape, double value, const TensorOptions& options = {}) { return braid::full(shape, value, placed(options)); }
inline Tensor randn(const Shape& shape, const TensorOptions& options = {}) { return braid::randn(shape, placed(options)); }
inline Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const TensorOptions& options = {}) {
  return braid::randint(low, high, shape, placed(options));
}
inline Tensor arange(std::int64_t end, const TensorOptions& options = {}) { return braid::arange(end, placed(options)); }
inline Tensor arange(std::int64_t start, std::int64_t end) { return braid::arange(start, end, 1, placed({})); }
inline Tensor tensor(const Literal& numbers, const TensorOptions& options = {}) { return braid::tensor(numbers, placed(options)); }
template <class T>
Tensor tensor(const std::vector<T>& numbers, const TensorOptions& options = {}) {
  return braid::tensor(numbers, placed(options));
}
/// 0, 1, 2, … in row-major order.
inline Tensor counting(const Shape& shape, DType dtype = DType::float32, std::optional<Device> on = {}) {
  return arange(shape.numel(), {.dtype = dtype}).reshape(shape).to(on.value_or(device(0)));
}
inline Tensor random_tensor(const Sizes& shape, DType dtype = DType::float32, std::optional<Device> on = {}, std::uint64_t seed = 1, double low = -2,
                            double high = 2) {
  return test::random_tensor(shape, dtype, on.value_or(device(0)), seed, low, high);
}
/// The module on the first device.
template <class M>
M home(M module) {
  to(module, device(0));
  return module;
}

}  // namespace on_first
}  // namespace braid::test
