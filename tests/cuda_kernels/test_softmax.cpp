#include <braid/core/kernel_args/softmax.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::SoftmaxArgs;
using braid::SoftmaxBackwardArgs;

namespace {

const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes{
    {1, 1},   {3, 2},   {5, 7},    {3, 17},   {7, 33},   {2, 65},
    {64, 10}, {5, 256}, {3, 1024}, {3, 1025}, {300, 10}, {2, 5001}};

std::vector<double> reference(const Buffer& x, std::int64_t row, std::int64_t n, bool log) {
  double max = -kInf;
  long double sum = 0;
  bool nan = false;
  for (std::int64_t i = 0; i < n; ++i)
    max = std::max(max, x[row * n + i]), nan = nan || std::isnan(x[row * n + i]);
  for (std::int64_t i = 0; i < n; ++i)
    sum += std::exp(static_cast<long double>(x[row * n + i] - max));
  std::vector<double> y(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = x[row * n + i];
    y[static_cast<std::size_t>(i)] =
        nan   ? kNaN
        : log ? static_cast<double>(v - max - std::log(sum))
              : static_cast<double>(std::exp(static_cast<long double>(v - max)) / sum);
  }
  return y;
}

double tolerance(DType t, double expected, bool log, double largest) {
  if (t == DType::float64)
    return (32 + 2 * largest) * 0x1p-53 * (log ? largest + 20 : std::fabs(expected)) + 1e-300;
  return (32 + 2 * largest) * 0x1p-24 * (log ? largest + 20 : std::fabs(expected)) + 1e-38 +
         half_ulp(t, expected);
}

void run(DType t, bool log, const void* x, void* y, std::int64_t rows, std::int64_t n) {
  gpu().softmax(SoftmaxArgs{.dtype = t, .log = log, .x = x, .y = y, .rows = rows, .n = n},
                gpu_stream());
}

}  // namespace

TEST_CASE("cuda softmax: every dtype, shape and alignment", "[cuda_kernels][softmax]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : kShapes)
        for (const double scale : {1.0, 20.0}) {
          INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n << " scale "
                                 << scale);
          Buffer x(t, rows * n), y(t, rows * n);
          x.pattern(1, scale);
          Twin dx(x, 1), dy(y, 1);
          run(t, log, dx.data(), dy.data(), rows, n);
          dy.fetch();
          std::int64_t wrong = 0;
          for (std::int64_t row = 0; row < rows; ++row) {
            const auto expected = reference(x, row, n, log);
            for (std::int64_t i = 0; i < n; ++i) {
              const double e = expected[static_cast<std::size_t>(i)];
              wrong += !(std::fabs(y[row * n + i] - e) <= tolerance(t, e, log, 2 * scale));
            }
          }
          CHECK(wrong == 0);
          run(t, log, dx.data(), dx.data(), rows, n);  // in place
          dx.fetch();
          CHECK(x.bytes() == y.bytes());
        }
}

TEST_CASE("cuda softmax: rows of NaN, of infinities, and with some of them",
          "[cuda_kernels][softmax]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const std::int64_t n : {1, 2, 17, 300, 1500, 9000}) {
        const std::int64_t rows = 7;
        Buffer x(t, rows * n), y(t, rows * n);
        x.pattern(2);
        x.put(1 * n + n / 2, kNaN);                                    // row 1: a NaN
        for (std::int64_t i = 0; i < n; ++i) x.put(2 * n + i, -kInf);  // row 2: only -inf
        x.put(3 * n + n - 1, -kInf);                                   // row 3: one -inf
        x.put(4 * n, kInf);                                            // row 4: an inf
        // row 5: all but the last
        for (std::int64_t i = 0; i + 1 < n; ++i) x.put(5 * n + i, -kInf);
        Twin dx(x), dy(y);
        run(t, log, dx.data(), dy.data(), rows, n);
        dy.fetch();
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const auto expected = reference(x, row, n, log);
          for (std::int64_t i = 0; i < n; ++i) {
            const double got = y[row * n + i],
                         e = row == 4 ? kNaN : expected[static_cast<std::size_t>(i)];
            wrong += std::isnan(e)   ? !std::isnan(got)
                     : std::isinf(e) ? got != e
                                     : !(std::fabs(got - e) <= tolerance(t, e, log, 2));
          }
        }
        INFO(braid::name_of(t) << " log " << log << " n " << n);
        CHECK(wrong == 0);
      }
}

TEST_CASE("cuda softmax: nothing, and refused dtypes", "[cuda_kernels][softmax]") {
  NEEDS_GPU;
  Buffer none(DType::float32, 0);
  Twin dnone(none);
  run(DType::float32, false, dnone.data(), dnone.data(), 0, 5);
  run(DType::float32, true, dnone.data(), dnone.data(), 5, 0);
  gpu().softmax_backward(SoftmaxBackwardArgs{.dtype = DType::float32,
                                             .log = true,
                                             .y = nullptr,
                                             .dy = nullptr,
                                             .dx = nullptr,
                                             .rows = 0,
                                             .n = 3},
                         gpu_stream());
  dnone.fetch();
  CHECK_THROWS_AS(run(DType::int32, false, nullptr, nullptr, 2, 2), braid::DTypeError);
  CHECK_THROWS_WITH(run(DType::int32, false, nullptr, nullptr, 2, 2),
                    "softmax: expected a floating-point dtype, got int32");
}

TEST_CASE("cuda softmax_backward: every dtype and shape", "[cuda_kernels][softmax]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : kShapes) {
        INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n);
        Buffer x(t, rows * n), y(t, rows * n), dy(t, rows * n), dx(t, rows * n);
        x.pattern(4), dy.pattern(5);
        Twin gx(x), gy(y), gdy(dy, 1), gdx(dx);
        run(t, log, gx.data(), gy.data(), rows, n);
        gpu().softmax_backward(SoftmaxBackwardArgs{.dtype = t,
                                                   .log = log,
                                                   .y = gy.data(),
                                                   .dy = gdy.data(),
                                                   .dx = gdx.data(),
                                                   .rows = rows,
                                                   .n = n},
                               gpu_stream());
        gy.fetch(), gdx.fetch();
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          double sum = 0, magnitude = 0;
          for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
            const double v = log ? dy[i] : y[i] * dy[i];
            sum += v, magnitude += std::fabs(v);
          }
          for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
            const double expected = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
            const double scale = log ? std::fabs(dy[i]) + std::exp(y[i]) * magnitude
                                     : std::fabs(y[i]) * (std::fabs(dy[i]) + magnitude);
            wrong += !(std::fabs(dx[i] - expected) <=
                       32 * unit(t) * scale + half_ulp(t, expected) + 1e-38);
          }
        }
        CHECK(wrong == 0);
        gpu().softmax_backward(SoftmaxBackwardArgs{.dtype = t,
                                                   .log = log,
                                                   .y = gy.data(),
                                                   .dy = gdy.data(),
                                                   .dx = gdy.data(),
                                                   .rows = rows,
                                                   .n = n},
                               gpu_stream());
        gdy.fetch();
        CHECK(dy.bytes() == dx.bytes());
      }
}
