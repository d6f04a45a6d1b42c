// Activations against long double; every dtype, size and layout is among the calls of every kernel.
#include <braid/core/kernel_args/activation.hpp>

#include "kernels/kernel_support.hpp"
#include "reference/activations.hpp"

using namespace kernel_test;
using braid::ActivationOp;

namespace {

// softplus: beta and threshold; elu: its three; hardtanh and clamp: bounds
constexpr double kA = 1.5, kB = 2.5, kC = 0.75;

double reference_of(ActivationOp op, double x) {
  switch (op) {
    case ActivationOp::gelu: return reference::gelu(x);
    case ActivationOp::gelu_tanh: return reference::gelu_tanh(x);
    case ActivationOp::silu: return reference::silu(x);
    case ActivationOp::softplus: return reference::softplus(x, kA, kB);
    case ActivationOp::elu: return reference::elu(x, kA, kB, kC);
    case ActivationOp::leaky_relu: return reference::leaky_relu(x, kA);
    case ActivationOp::hardtanh:
    case ActivationOp::clamp: return reference::cut_off(x, kA, kB);
    case ActivationOp::hardsigmoid: return reference::hardsigmoid(x);
    case ActivationOp::hardswish: return reference::hardswish(x);
    case ActivationOp::mish: return reference::mish(x);
    case ActivationOp::logsigmoid: return reference::logsigmoid(x);
    case ActivationOp::softsign: return reference::softsign(x);
  }
  return kNaN;
}

void run(ActivationOp op, Buffer& out, const Buffer& x, const Loop& loop) {
  kernels().activation({op, x.dtype(), out.data(), x.data(), nullptr, kA, kB, kC, loop}, stream());
}
std::vector<ActivationOp> activations() {
  std::vector<ActivationOp> all;
  for (int i = 0; i < braid::kActivationCount; ++i) all.push_back(static_cast<ActivationOp>(i));
  return all;
}
/// ULP of the result: hardsigmoid and hardswish round x + 3, which may cancel; the others are
/// smooth down to their tails.
bool has_relative_accuracy(ActivationOp op) {
  return op != ActivationOp::hardsigmoid && op != ActivationOp::hardswish;
}

}  // namespace

TEST_CASE("activation: float results are within 4 ULP, the tails included",
          "[kernels][activation]") {
  if (on_cuda()) return;  // there the tails are within a bound of every kernel's, which is absolute
  for (const ActivationOp op : activations()) {
    const std::int64_t n = 40001;
    Buffer x(DType::float32, n), out(DType::float32, n);
    for (std::int64_t i = 0; i < n; ++i)
      x.put(i, -20 + 40.0 * static_cast<double>(i) / static_cast<double>(n - 1) + 1e-4);
    run(op, out, x, dense(n));
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double want = reference_of(op, x[i]), unit = has_relative_accuracy(op)
                                                             ? ulp(DType::float32, want)
                                                             : 0x1p-23 * (1 + std::fabs(x[i]));
      worst = std::max(worst, std::fabs(out[i] - want) / unit);
    }
    INFO("activation " << static_cast<int>(op) << " worst " << worst << " ULP");
    CHECK(worst <= 4);
  }
}

TEST_CASE("activation: NaN stays, integers are refused, threads change nothing",
          "[kernels][activation]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const ActivationOp op : activations()) {
      Buffer x(t, 3), out(t, 3);
      x.pattern(1).put(1, kNaN);
      run(op, out, x, dense(3));
      INFO("activation " << static_cast<int>(op) << ' ' << braid::name_of(t));
      CHECK(std::isnan(out[1]));
      CHECK_FALSE(std::isnan(out[0]));
    }
  Buffer whole(DType::int32, 4);
  CHECK_THROWS_WITH(run(ActivationOp::gelu, whole, whole, dense(4)),
                    "activation: expected a floating-point dtype, got int32");
  if (on_cuda()) return;
  Buffer x(DType::float32, 100003), out(DType::float32, 100003);
  x.pattern(5, 3);
  for (const ActivationOp op : activations())
    check_threads(out, [&] { run(op, out, x, dense(100003)); });
}
