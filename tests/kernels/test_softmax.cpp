#include <braid/core/kernel_args/softmax.hpp>

#include "kernels/kernel_support.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;
using braid::SoftmaxArgs;
using braid::SoftmaxBackwardArgs;

namespace {

const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes{
    {1, 1},   {3, 2},   {5, 7},    {4, 8},     {3, 15},   {3, 16},   {3, 17},    {7, 33}, {2, 65},
    {64, 10}, {5, 256}, {3, 1025}, {2000, 10}, {2, 8192}, {2, 8193}, {1, 50001}, {2, 300}};

std::vector<double> reference(const Buffer& x, std::int64_t row, std::int64_t n, bool log) {
  double max = -kInf;
  long double sum = 0;  // more digits than float64: the reference adds in a row
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

// Error of one result: a few units of the type computed in, |x - max| units through the
// exponential, and the rounding of 16-bit types.
double tolerance(DType t, double expected, bool log, double largest) {
  if (t == DType::float64)
    return (32 + 2 * largest) * 0x1p-53 * (log ? largest + 20 : std::fabs(expected)) + 1e-300;
  const double f =
      (32 + 2 * largest) * 0x1p-24 * (log ? largest + 20 : std::fabs(expected)) + 1e-38;
  return t == DType::float32 ? f : f + 0.51 * ulp(t, expected);
}

SoftmaxArgs args_of(DType t, bool log, const Buffer& x, Buffer& y, std::int64_t rows,
                    std::int64_t n) {
  return SoftmaxArgs{.dtype = t, .log = log, .x = x.data(), .y = y.data(), .rows = rows, .n = n};
}

}  // namespace

TEST_CASE("softmax: every dtype, shape and alignment", "[kernels][softmax]") {
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : kShapes)
        for (const std::int64_t shift : {0, 1})
          for (const double scale : {1.0, 20.0}) {
            INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n << " shift "
                                   << shift << " scale " << scale);
            Buffer x(t, rows * n, shift), y(t, rows * n, shift);
            x.pattern(1, scale);
            kernels().softmax(args_of(t, log, x, y, rows, n), stream());
            std::int64_t wrong = 0;
            for (std::int64_t row = 0; row < rows; ++row) {
              const auto expected = reference(x, row, n, log);
              for (std::int64_t i = 0; i < n; ++i) {
                const double e = expected[static_cast<std::size_t>(i)];
                wrong += !(std::fabs(y[row * n + i] - e) <= tolerance(t, e, log, 2 * scale));
              }
            }
            CHECK(wrong == 0);
            CHECK(y.guards_intact());
          }
}

TEST_CASE("softmax: rows of NaN, of infinities, and with some of them", "[kernels][softmax]") {
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const std::int64_t n : {1, 2, 17, 300, 9000}) {
        const std::int64_t rows = 7;
        Buffer x(t, rows * n), y(t, rows * n);
        x.pattern(2);
        x.put(1 * n + n / 2, kNaN);                                    // row 1: a NaN
        for (std::int64_t i = 0; i < n; ++i) x.put(2 * n + i, -kInf);  // row 2: only -inf
        x.put(3 * n + n - 1, -kInf);                                   // row 3: one -inf
        x.put(4 * n, kInf);                                            // row 4: an inf
        // row 5: all but the last
        for (std::int64_t i = 0; i + 1 < n; ++i) x.put(5 * n + i, -kInf);
        kernels().softmax(args_of(t, log, x, y, rows, n), stream());
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const auto expected = reference(x, row, n, log);
          for (std::int64_t i = 0; i < n; ++i) {
            const double got = y[row * n + i];
            double e = expected[static_cast<std::size_t>(i)];
            if (row == 4) e = kNaN;
            wrong += std::isnan(e)   ? !std::isnan(got)
                     : std::isinf(e) ? got != e
                                     : !(std::fabs(got - e) <= tolerance(t, e, log, 2));
          }
        }
        INFO(braid::name_of(t) << " log " << log << " n " << n);
        CHECK(wrong == 0);
      }
}

TEST_CASE("softmax: in place, empty, and by any number of threads", "[kernels][softmax]") {
  for (const DType t : kFloats)
    for (const bool log : {false, true}) {
      for (const auto& shape : kShapes) {
        // not a structured binding: clang 14 cannot capture one
        const auto rows = shape.first, n = shape.second;
        Buffer x(t, rows * n), y(t, rows * n);
        x.pattern(3);
        check_threads(y, [&] { kernels().softmax(args_of(t, log, x, y, rows, n), stream()); });
        SoftmaxArgs in_place = args_of(t, log, x, x, rows, n);
        kernels().softmax(in_place, stream());
        CHECK(x.bytes() == y.bytes());
      }
      Buffer none(t, 0);
      kernels().softmax(args_of(t, log, none, none, 0, 5), stream());
      kernels().softmax(args_of(t, log, none, none, 5, 0), stream());
      CHECK(none.guards_intact());
    }
}

TEST_CASE("softmax: outputs larger than the caches", "[kernels][softmax]") {
#if !BRAID_SANITIZED
  const std::int64_t rows = 40000, n = 1024;  // 160 MiB
  std::vector<float> x(static_cast<std::size_t>(rows * n)), y(x.size() + 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1021) * 0.01f;
  float* const aligned = y.data() + (64 - reinterpret_cast<std::uintptr_t>(y.data()) % 64) / 4 % 16;
  Buffer row_x(DType::float32, n), row_y(DType::float32, n);
  for (const bool log : {false, true}) {
    kernels().softmax(
        SoftmaxArgs{
            .dtype = DType::float32, .log = log, .x = x.data(), .y = aligned, .rows = rows, .n = n},
        stream());
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < rows; row += 97) {
      std::memcpy(row_x.data(), x.data() + row * n, static_cast<std::size_t>(n) * 4);
      kernels().softmax(args_of(DType::float32, log, row_x, row_y, 1, n), stream());
      wrong += std::memcmp(row_y.data(), aligned + row * n, static_cast<std::size_t>(n) * 4) != 0;
    }
    CHECK(wrong == 0);
  }
#endif
}

TEST_CASE("softmax_backward: every dtype and shape, any number of threads", "[kernels][softmax]") {
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : kShapes) {
        INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n);
        Buffer x(t, rows * n), y(t, rows * n), dy(t, rows * n, 1), dx(t, rows * n);
        x.pattern(4), dy.pattern(5);
        kernels().softmax(args_of(t, log, x, y, rows, n), stream());
        const SoftmaxBackwardArgs args{.dtype = t,
                                       .log = log,
                                       .y = y.data(),
                                       .dy = dy.data(),
                                       .dx = dx.data(),
                                       .rows = rows,
                                       .n = n};
        check_threads(dx, [&] { kernels().softmax_backward(args, stream()); });
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
            const double u = t == DType::float64 ? 0x1p-53 : 0x1p-24;
            const double limit =
                32 * u * scale +
                (t == DType::float16 || t == DType::bfloat16 ? 0.51 * ulp(t, expected) : 0) + 1e-38;
            wrong += !(std::fabs(dx[i] - expected) <= limit);
          }
        }
        CHECK(wrong == 0);
        CHECK(dx.guards_intact());
        kernels().softmax_backward(SoftmaxBackwardArgs{.dtype = t,
                                                       .log = log,
                                                       .y = y.data(),
                                                       .dy = dy.data(),
                                                       .dx = dy.data(),
                                                       .rows = rows,
                                                       .n = n},
                                   stream());
        CHECK(dy.bytes() == dx.bytes());
      }
}

TEST_CASE("softmax: integers are refused by name", "[kernels][softmax]") {
  Buffer x(DType::int32, 4), y(DType::int32, 4);
  CHECK_THROWS_AS(kernels().softmax(args_of(DType::int32, false, x, y, 2, 2), stream()),
                  braid::DTypeError);
  CHECK_THROWS_WITH(kernels().softmax(args_of(DType::int32, false, x, y, 2, 2), stream()),
                    "softmax: expected a floating-point dtype, got int32");
}
