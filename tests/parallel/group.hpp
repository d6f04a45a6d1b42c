#pragma once
// Helpers shared by the tests of parallel: groups of devices and their memory, a small model, and
// the list of acceptance tests.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <braid/braid.hpp>
#include <braid/nn/internal/marks.hpp>

#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"
#include "support/tensors.hpp"

namespace braid::test {

// ---- devices

/// The first n devices.
std::vector<Device> group(int n);
Device device(int i);
constexpr std::size_t usize(std::int64_t n) { return static_cast<std::size_t>(n); }
/// n devices, or all if there are fewer.
inline int up_to(int n) { return std::min(n, device_count()); }
/// (0), (0, 1), (1, 0), and all devices if there are more than two; only lists of existing devices.
std::vector<std::vector<Device>> orders();
/// The device that the acceptance tests call the CPU: the host if the devices are GPUs, else one of
/// the CPU devices.
inline Device host() { return Device("cpu"); }
/// A device that is neither device(0) nor device(1), if there is one.
std::optional<Device> third();
template <class M> M placed_on(M module, Device at) {
  to(module, at);
  return module;
}
/// The bytes in use on each device.
std::vector<std::size_t> in_use();

/// A way to run DataParallel.
struct Mode {
  const char* name;
  parallel::DataParallelOptions options;
  bool joined = true;        // model(x), else model.replicas(x)
  int virtual_replicas = 0;  // above 0: a DeterministicDataParallel
  bool replicated_optimizer = false;
};
/// The modes over n devices; if there are virtual replicas, each device has two.
std::vector<Mode> modes(int n);
/// The module in a DataParallel of that mode.
template <class M>
parallel::DataParallel<M> wrapped(M module, const std::vector<Device>& on, const Mode& mode) {
  if (mode.virtual_replicas == 0) return {std::move(module), on, mode.options};
  return parallel::DeterministicDataParallel<M>(std::move(module), on,
                                                {.virtual_replicas = mode.virtual_replicas});
}

// ---- numbers

/// Copies of the present values; a later step does not change them.
std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors);
std::vector<Tensor> gradients_of(const std::vector<Tensor>& tensors);
inline std::vector<double> numbers(const Tensor& t) { return t.to_vector<double>(); }
void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want);
void check_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, Tolerance t);
/// Checks that f(n) has the same bits for n = 1, 2, … devices.
void check_same_over_counts(const std::function<std::vector<Tensor>(int)>& f);

/// Two layers, a buffer that counts rows in place, and a plain field.
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

/// Returns, for each row, the index of the device that it runs on.
struct Where : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    return full({x.size(0)}, static_cast<double>(weight.device().index()), {.device = x.device()});
  }
  BRAID_FIELDS(weight)
};

/// A module with one weight; f computes the output from the weight and the arguments.
template <class F> struct Made : nn::Module {
  nn::Parameter weight;
  F f;
  explicit Made(F function, const Shape& shape = {1}) : weight(ones(shape)), f(function) {}
  template <class... A> auto operator()(const A&... args) const { return f(weight, args...); }
  BRAID_FIELDS(weight)
};

/// Runs f without recording, so it may write weights.
template <class F> void unrecorded(const F& f) {
  const NoGrad guard;
  f();
}

/// The gradient of the squared gradient of Σ y² with respect to `of`, with respect to `weights`.
template <class M>
std::vector<Tensor> penalty_gradients(const M& model, const Tensor& x,
                                      const std::vector<Tensor>& of,
                                      const std::vector<Tensor>& weights) {
  const Tensor y = model(x);
  Tensor penalty;
  for (const Tensor& g : grad(std::vector<Tensor>{(y * y).sum()}, of, {}, true, true))
    penalty = penalty.defined() ? penalty + (g * g).sum() : (g * g).sum();
  return grad(std::vector<Tensor>{penalty}, weights, {}, false, false, true);
}

// ---- this process

/// Returns how many warnings with exactly this text the process has emitted.
[[nodiscard]] int warnings_with(std::string_view text);

/// Registers an acceptance test for "acceptance: the list".
bool list_acceptance(std::string_view title);

}  // namespace braid::test

namespace braid::test::on_device {
using parallel::chunk_sizes;
using parallel::data_parallel;
using parallel::DataParallel;
using parallel::DataParallelOptions;
using parallel::DeterministicDataParallel;
using parallel::DeterministicOptions;
}  // namespace braid::test::on_device

/// An acceptance test, "T01: …" to "T36: …" or "C1: …" to "C9: …": the tests of PyTorch's
/// test_data_parallel.py and of LibTorch's parallel.cpp, by number; docs/notes/acceptance.md says
/// what each requires. The originals need two GPUs and the host. These run on any devices, and skip
/// the parts that need two devices if there is only one.
#define ACCEPTANCE(title)                                                       \
  [[maybe_unused]] static const bool BRAID_ACCEPTANCE_NAME(listed_, __LINE__) = \
      ::braid::test::list_acceptance(title);                                    \
  TEST_CASE(title, "[acceptance]")
#define BRAID_ACCEPTANCE_NAME(a, b) BRAID_ACCEPTANCE_JOIN(a, b)
#define BRAID_ACCEPTANCE_JOIN(a, b) a##b
