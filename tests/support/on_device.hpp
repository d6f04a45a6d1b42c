#pragma once
// The device that a suite runs on. Tests inside namespace braid::test::on_device make their tensors
// there: on cpu:0 with BRAID_DEVICE=cpu, else on a CUDA device, which in the SIMT build is an
// emulated one.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/random.hpp>

#include "support/tensors.hpp"

namespace braid::test {

/// Where the tests run.
inline Device here() { return best_device(); }
/// Another device of that type; the same one where there is no other.
inline Device there() {
  const std::vector<Device> list = devices();
  return list[static_cast<std::size_t>(here().index() + 1) % list.size()];
}
inline bool on_cpu() { return here().type() == DeviceType::cpu; }
/// The tests run on CUDA devices that the CPU emulates: some 1000 times slower a thread, so what
/// only repeats a case at a larger size is left out.
// defined once: the other objects are then the same in every build, and are compiled once (ccache)
bool emulated();
/// n, or `most` under emulation.
inline std::int64_t cut(std::int64_t n, std::int64_t most) {
  return emulated() ? std::min(n, most) : n;
}
/// What CI samples: with BRAID_TEST_PART=i/n in the environment, is the number i modulo n?
bool in_part(std::size_t number);
/// Emulated devices differ in nothing but their number, so the dearest checks are divided among
/// them: does this one run the case of that number, and is it in the part?
bool mine(std::size_t number);
/// The same of the table of ops, which emulated devices divide with BRAID_TEST_DIVIDE=1 (check
/// simt); without it (./dev test ops) each runs all of it.
bool mine_of_table(std::size_t number);
/// Counts of threads to run a case with; a GPU has no use for more than one.
inline std::vector<int> thread_counts(std::vector<int> list) {
  if (!on_cpu()) list.resize(1);
  return list;
}

/// The result, when the device has made it: what a kernel found wrong is thrown here, at the next
/// wait, and on the CPU at once.
inline Tensor awaited(const Tensor& t) {
  synchronize(t.device());
  return t;
}

/// A text about cpu:0, cpu:1, …, about the devices from here() on.
inline std::string here(std::string text) {
  const std::vector<Device> list = devices();
  for (std::size_t at = text.find("cpu:"); at != std::string::npos;
       at = text.find("cpu:", at + 4)) {
    const std::size_t index = static_cast<std::size_t>(text.at(at + 4) - '0');
    text.replace(at, 5,
                 str(list[(static_cast<std::size_t>(here().index()) + index) % list.size()]));
  }
  return text;
}

/// The factories of braid and of this folder, on here() unless a device is named.
namespace on_device {

inline TensorOptions placed(TensorOptions options) {
  if (!options.device) options.device = here();
  return options;
}
inline Tensor zeros(const Shape& shape, const TensorOptions& options = {}) {
  return noted(braid::zeros(shape, placed(options)));
}
inline Tensor ones(const Shape& shape, const TensorOptions& options = {}) {
  return noted(braid::ones(shape, placed(options)));
}
inline Tensor empty(const Shape& shape, const TensorOptions& options = {}) {
  return noted(braid::empty(shape, placed(options)));
}
inline Tensor full(const Shape& shape, const Scalar& value, const TensorOptions& options = {}) {
  return noted(braid::full(shape, value, placed(options)));
}
inline Tensor eye(std::int64_t n, const TensorOptions& options = {}) {
  return noted(braid::eye(n, placed(options)));
}
inline Tensor randn(const Shape& shape, const TensorOptions& options = {}) {
  return noted(braid::randn(shape, placed(options)));
}
inline Tensor rand(const Shape& shape, const TensorOptions& options = {}) {
  return noted(braid::rand(shape, placed(options)));
}
inline Tensor uniform(const Shape& shape, double low, double high,
                      const TensorOptions& options = {}) {
  return noted(braid::uniform(shape, low, high, placed(options)));
}
inline Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                      const TensorOptions& options = {}) {
  return noted(braid::randint(low, high, shape, placed(options)));
}
inline Tensor randperm(std::int64_t n, const TensorOptions& options = {}) {
  return noted(braid::randperm(n, placed(options)));
}
inline Tensor arange(const Scalar& end, const TensorOptions& options = {}) {
  return noted(braid::arange(end, placed(options)));
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                     const TensorOptions& options = {}) {
  return noted(braid::arange(start, end, step, placed(options)));
}
inline Tensor tensor(const Literal& numbers, const TensorOptions& options = {}) {
  return noted(braid::tensor(numbers, placed(options)));
}
template <class T> Tensor tensor(const std::vector<T>& numbers, const TensorOptions& options = {}) {
  return noted(braid::tensor(numbers, placed(options)));
}
/// 0, 1, 2, … in row-major order.
inline Tensor counting(const Shape& shape, DType dtype = DType::float32,
                       std::optional<Device> on = {}) {
  return arange(shape.numel(), {.dtype = dtype}).reshape(shape).to(on.value_or(here()));
}
inline Tensor random_tensor(const Sizes& shape, DType dtype = DType::float32,
                            std::optional<Device> on = {}, std::uint64_t seed = 1, double low = -2,
                            double high = 2) {
  return test::random_tensor(shape, dtype, on.value_or(here()), seed, low, high);
}
inline Tensor tensor_of(const Array& a, DType dtype = DType::float32,
                        std::optional<Device> on = {}) {
  return test::tensor_of(a, dtype, on.value_or(here()));
}
/// The module here.
template <class M> M home(M module) {
  to(module, here());
  return module;
}

}  // namespace on_device
}  // namespace braid::test
