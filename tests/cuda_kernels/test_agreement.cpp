#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/random.hpp>
#include <braid/core/kernel_args/reduce.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

// The CUDA and the CPU kernels on the same random numbers, with the CPU's float64 kernels as the
// arbiter: each stays within its bound of the arbiter (elementary functions 4 ULP, sums (ceil(log2
// n) + 2) u Σ|x|, products (k + 2) u Σ|a||b|), and the CUDA error is not far beyond the CPU's.
using namespace kernel_test;

namespace {

/// Numbers of `t` from the common generator, and the same numbers in float64.
struct Inputs {
  Buffer x, wide;
  Inputs(DType t, std::int64_t n, std::uint64_t seed, double low, double high)
      : x(t, n), wide(DType::float64, n) {
    kernels().random(braid::RandomArgs{.kind = braid::RandomKind::uniform,
                                       .dtype = t,
                                       .out = x.data(),
                                       .n = n,
                                       .seed = seed,
                                       .stream = 1,
                                       .low = low,
                                       .high = high,
                                       .ilow = 0,
                                       .ihigh = 0},
                     stream());
    for (std::int64_t i = 0; i < n; ++i) wide.put(i, x[i]);
  }
};

/// The largest |got - arbiter| / bound, and 1 where the arbiter's is not a number and the result
/// is.
template <class Bound> double worst(const Buffer& got, const Buffer& arbiter, Bound bound) {
  double largest = 0;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - arbiter[i]);
    largest = std::max(largest, error == 0 ? 0.0 : error / bound(i, arbiter[i]));
  }
  return largest;
}

}  // namespace

TEST_CASE("cuda agrees with the CPU: elementary functions", "[cuda_kernels][agreement]") {
  NEEDS_GPU;
  using braid::UnaryOp;
  const std::int64_t n = 20001;
  for (const DType t : {DType::float32, DType::float16, DType::bfloat16})
    for (const UnaryOp op : {UnaryOp::exp, UnaryOp::log, UnaryOp::sqrt, UnaryOp::rsqrt,
                             UnaryOp::tanh, UnaryOp::sigmoid, UnaryOp::sin, UnaryOp::cos,
                             UnaryOp::reciprocal, UnaryOp::square, UnaryOp::pow_scalar}) {
      const bool positive = op == UnaryOp::log || op == UnaryOp::sqrt || op == UnaryOp::rsqrt ||
                            op == UnaryOp::pow_scalar || op == UnaryOp::reciprocal;
      Inputs in(t, n, 3, positive ? 0.01 : -9, 9);
      Buffer cpu(t, n), cuda(t, n), arbiter(DType::float64, n);
      Twin gx(in.x), gy(cuda);
      braid::UnaryArgs args{
          .op = op, .dtype = t, .out = gy.data(), .x = gx.data(), .alpha = 1.7, .loop = dense(n)};
      gpu().unary(args, gpu_stream());
      gy.fetch();
      args.out = cpu.data(), args.x = in.x.data();
      kernels().unary(args, stream());
      args.dtype = DType::float64, args.out = arbiter.data(), args.x = in.wide.data();
      kernels().unary(args, stream());
      const auto bound = [&](std::int64_t, double y) {
        return (t == DType::float32 ? 4 : 0.51) * ulp(t, y);
      };
      INFO("op " << static_cast<int>(op) << " " << braid::name_of(t));
      CHECK(worst(cpu, arbiter, bound) <= 1);
      CHECK(worst(cuda, arbiter, bound) <= 1);
    }
}

TEST_CASE("cuda agrees with the CPU: sums and softmax", "[cuda_kernels][agreement]") {
  NEEDS_GPU;
  for (const DType t : {DType::float32, DType::float16, DType::bfloat16})
    for (const auto& [rows, n] :
         {std::pair<std::int64_t, std::int64_t>{60, 10}, {33, 700}, {3, 9001}}) {
      INFO(braid::name_of(t) << " " << rows << " x " << n);
      Inputs in(t, rows * n, 5, -2, 3);
      Buffer cpu(t, rows), cuda(t, rows), arbiter(DType::float64, rows);
      Twin gx(in.x), gout(cuda);
      braid::ReduceArgs args{.op = braid::ReduceOp::sum,
                             .dtype = t,
                             .out = gout.data(),
                             .x = gx.data(),
                             .scale = 1,
                             .keep = strided({rows}, {{1}, {n}}),
                             .over = strided({n}, {{0}, {1}})};
      gpu().reduce(args, gpu_stream());
      gout.fetch();
      args.out = cpu.data(), args.x = in.x.data();
      kernels().reduce(args, stream());
      args.dtype = DType::float64, args.out = arbiter.data(), args.x = in.wide.data();
      kernels().reduce(args, stream());
      const auto bound = [&, n = n](std::int64_t row, double y) {
        double magnitude = 0;
        for (std::int64_t i = 0; i < n; ++i) magnitude += std::fabs(in.wide[row * n + i]);
        return (std::ceil(std::log2(static_cast<double>(n))) + 2) * unit(t) * magnitude +
               half_ulp(t, y);
      };
      CHECK(worst(cpu, arbiter, bound) <= 1);
      CHECK(worst(cuda, arbiter, bound) <= 1);

      for (const bool log : {false, true}) {
        Buffer cpu_y(t, rows * n), cuda_y(t, rows * n), arbiter_y(DType::float64, rows * n);
        Twin gy(cuda_y);
        gpu().softmax(
            braid::SoftmaxArgs{
                .dtype = t, .log = log, .x = gx.data(), .y = gy.data(), .rows = rows, .n = n},
            gpu_stream());
        gy.fetch();
        kernels().softmax(
            braid::SoftmaxArgs{
                .dtype = t, .log = log, .x = in.x.data(), .y = cpu_y.data(), .rows = rows, .n = n},
            stream());
        kernels().softmax(braid::SoftmaxArgs{.dtype = DType::float64,
                                             .log = log,
                                             .x = in.wide.data(),
                                             .y = arbiter_y.data(),
                                             .rows = rows,
                                             .n = n},
                          stream());
        const auto near = [&](std::int64_t, double y) {
          return 42 * unit(t) * (log ? 20 : y) + half_ulp(t, y);
        };
        CHECK(worst(cpu_y, arbiter_y, near) <= 1);
        CHECK(worst(cuda_y, arbiter_y, near) <= 1);
      }
    }
}

TEST_CASE("cuda agrees with the CPU: products", "[cuda_kernels][agreement]") {
  NEEDS_GPU;
  for (const DType t : {DType::float32, DType::float16, DType::bfloat16})
    for (int layout = 0; layout < 4; ++layout)
      for (const std::int64_t k : {5, 130}) {
        const std::int64_t m = 66, n = 37;
        Inputs a(t, m * k, 7, -1, 1), b(t, k * n, 8, -1, 1);
        Buffer cpu(t, m * n), cuda(t, m * n), arbiter(DType::float64, m * n);
        Twin ga(a.x), gb(b.x), gc(cuda);
        braid::GemmArgs args{};
        args.dtype = t, args.ta = layout >= 2, args.tb = layout % 2 == 1;
        args.m = m, args.n = n, args.k = k, args.batch = 1;
        args.lda = args.ta ? m : k, args.ldb = args.tb ? k : n, args.ldc = n;
        args.a = ga.data(), args.b = gb.data(), args.c = gc.data();
        gpu().gemm(args, gpu_stream());
        gc.fetch();
        args.a = a.x.data(), args.b = b.x.data(), args.c = cpu.data();
        kernels().gemm(args, stream());
        args.dtype = DType::float64, args.a = a.wide.data(), args.b = b.wide.data(),
        args.c = arbiter.data();
        kernels().gemm(args, stream());
        const auto bound = [&](std::int64_t at, double y) {
          double size = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            const double x = a.wide[args.ta ? p * m + at / n : at / n * k + p],
                         z = b.wide[args.tb ? at % n * k + p : p * n + at % n];
            size += std::fabs(x * z);
          }
          return (static_cast<double>(k) + 2) * unit(t) * size + half_ulp(t, y);
        };
        INFO(braid::name_of(t) << " layout " << layout << " k " << k);
        CHECK(worst(cpu, arbiter, bound) <= 1);
        CHECK(worst(cuda, arbiter, bound) <= 1);
      }
}
