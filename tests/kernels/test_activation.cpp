// Checks activations against long double.
#include <algorithm>

#include <braid/core/internal/kernel_args/activation.hpp>

#include "core/op_cases_activation.hpp"
#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::ActivationOp;
using braid::test::activation_call;

namespace {

void run(ActivationOp op, Buffer& out, const Buffer& x, const Loop& loop,
         const Buffer* dy = nullptr) {
  const braid::test::ActivationCall& f = activation_call(op);
  braid::ActivationArgs args{};
  args.op = op, args.a = f.a, args.b = f.b, args.c = f.c;
  args.dtype = x.dtype();
  args.out = out.data(), args.x = x.data(), args.dy = dy != nullptr ? dy->data() : nullptr;
  args.loop = loop;
  kernels().activation(args, stream());
}
std::vector<ActivationOp> activations() {
  return {
#define BRAID_ACTIVATION(name) ActivationOp::name,
#include <braid/core/internal/activation.def>
  };
}

double reference_of(ActivationOp op, double x) { return activation_call(op).expected(x); }

/// Whether the error is bounded in ULP. hardsigmoid and hardswish round x + 3, which may cancel;
/// the others are smooth down to their tails.
bool has_relative_accuracy(ActivationOp op) {
  return op != ActivationOp::hardsigmoid && op != ActivationOp::hardswish;
}

}  // namespace

TEST_CASE("activation: float results are within 4 ULP, the tails included",
          "[kernels][activation]") {
  if (on_cuda()) return;  // on CUDA only the absolute bound of every kernel applies
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

TEST_CASE("activation: every dtype, size, alignment and stride, forward and back",
          "[kernels][activation]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const ActivationOp op : activations())
      for (const Loop& loop :
           {dense(1), dense(7), dense(33), dense(1025), strided({33, 5}, {{5, 1}, {1, 33}, {0, 1}}),
            strided({100}, {{2}, {3}, {1}})})
        for (const std::int64_t shift : {0, 1}) {
          INFO("activation " << static_cast<int>(op) << ' ' << braid::name_of(t) << " n "
                             << loop.n);
          Buffer x(t, extent(loop, 1), shift), dy(t, extent(loop, 2)),
              out(t, extent(loop, 0), shift), back(t, extent(loop, 0));
          x.pattern(1, 5), dy.pattern(2, 2);
          run(op, out, x, loop);
          run(op, back, x, loop, &dy);
          std::int64_t wrong = 0;
          const double close_to = t == DType::float64   ? 0x1p-50
                                  : t == DType::float32 ? 0x1p-21
                                  : t == DType::float16 ? 0x1p-10
                                                        : 0x1p-7;
          for (std::int64_t i = 0; i < loop.n; ++i) {
            const double v = x[offset(loop, 1, i)], h = 1e-6, d = dy[offset(loop, 2, i)],
                         y = reference_of(op, v);
            wrong += !(std::fabs(out[offset(loop, 0, i)] - y) <=
                       close_to * (1 + std::fabs(v) + std::fabs(y)));
            // Checks the derivative by differences, which say nothing at a kink or a jump.
            const double left = (y - reference_of(op, v - h)) / h,
                         right = (reference_of(op, v + h) - y) / h;
            if (std::fabs(left - right) < 1e-4)
              wrong += !(std::fabs(back[offset(loop, 0, i)] - d * left) <=
                         (close_to + 2e-5) * (4 + 4 * std::fabs(d)));
          }
          CHECK(wrong == 0);
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
