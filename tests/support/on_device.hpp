#pragma once
// The device that a test suite runs on. The factories of namespace braid::test::on_device create
// their tensors there: on cpu:0 with BRAID_DEVICE=cpu, else on a CUDA device, which is emulated in
// the SIMT build.
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

/// The device of this run.
inline Device here() { return best_device(); }
/// Another device of the same type, or the same one if there is no other.
inline Device there() {
  const std::vector<Device> list = devices();
  return list[static_cast<std::size_t>(here().index() + 1) % list.size()];
}
inline bool on_cpu() { return here().type() == DeviceType::cpu; }
/// Whether the tests run on emulated CUDA devices. These are about 1000 times slower per thread, so
/// cases that only repeat others at a larger size are left out.
/// Defined in one .cpp file: the other objects are then the same in every build, and ccache shares
/// them.
bool emulated();
/// Returns n, or at most `most` under emulation.
inline std::int64_t cut(std::int64_t n, std::int64_t most) {
  return emulated() ? std::min(n, most) : n;
}
/// Whether this run includes case `number`. With BRAID_TEST_PART=i/n, CI samples the cases whose
/// number is i modulo n.
bool in_part(std::size_t number);
/// Emulated devices differ only in their index, so the most expensive checks are divided among
/// them. Returns whether this device runs case `number` and the case is in the sampled part.
bool mine(std::size_t number);
/// The same for the table of ops. Emulated devices divide it with BRAID_TEST_DIVIDE=1 (check simt).
/// Without it (./dev test ops) each device runs the whole table.
bool mine_of_table(std::size_t number);
/// The thread counts to run a case with. On a GPU only the first is used.
inline std::vector<int> thread_counts(std::vector<int> list) {
  if (!on_cpu()) list.resize(1);
  return list;
}

/// Waits for the device and returns t. A GPU kernel's errors are thrown at the next wait, so they
/// are thrown here; the CPU throws them immediately.
inline Tensor awaited(const Tensor& t) {
  synchronize(t.device());
  return t;
}

/// Replaces cpu:0, cpu:1, … in the text with the names of the devices from here() on.
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

/// The factories of braid and of this folder. They use here() unless a device is given.
namespace on_device {

inline FactoryOptions placed(FactoryOptions options) {
  if (!options.device) options.device = here();
  return options;
}
inline Tensor zeros(const Shape& shape, const FactoryOptions& options = {}) {
  return noted(braid::zeros(shape, placed(options)));
}
inline Tensor ones(const Shape& shape, const FactoryOptions& options = {}) {
  return noted(braid::ones(shape, placed(options)));
}
inline Tensor empty(const Shape& shape, const FactoryOptions& options = {}) {
  return noted(braid::empty(shape, placed(options)));
}
inline Tensor full(const Shape& shape, const Scalar& value, const FactoryOptions& options = {}) {
  return noted(braid::full(shape, value, placed(options)));
}
inline Tensor eye(std::int64_t n, const FactoryOptions& options = {}) {
  return noted(braid::eye(n, placed(options)));
}
inline Tensor randn(const Shape& shape, const FactoryOptions& options = {}) {
  return noted(braid::randn(shape, placed(options)));
}
inline Tensor rand(const Shape& shape, const FactoryOptions& options = {}) {
  return noted(braid::rand(shape, placed(options)));
}
inline Tensor uniform(const Shape& shape, double low, double high,
                      const FactoryOptions& options = {}) {
  return noted(braid::uniform(shape, low, high, placed(options)));
}
inline Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                      const FactoryOptions& options = {}) {
  return noted(braid::randint(low, high, shape, placed(options)));
}
inline Tensor randperm(std::int64_t n, const FactoryOptions& options = {}) {
  return noted(braid::randperm(n, placed(options)));
}
inline Tensor arange(const Scalar& end, const FactoryOptions& options = {}) {
  return noted(braid::arange(end, placed(options)));
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                     const FactoryOptions& options = {}) {
  return noted(braid::arange(start, end, step, placed(options)));
}
inline Tensor tensor(const Literal& numbers, const FactoryOptions& options = {}) {
  return noted(braid::tensor(numbers, placed(options)));
}
template <class T>
Tensor tensor(const std::vector<T>& numbers, const FactoryOptions& options = {}) {
  return noted(braid::tensor(numbers, placed(options)));
}
/// Returns 0, 1, 2, … in row-major order.
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
/// Moves the module to here().
template <class M> M home(M module) {
  to(module, here());
  return module;
}

}  // namespace on_device
}  // namespace braid::test
