#include <algorithm>

#include <braid/core/internal/kernel_args/softmax.hpp>

#include "kernels/kernel_support.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;

namespace {

using Shapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
const Shapes& shapes() {
  static const Shapes all{{1, 1},     {3, 2},    {5, 7},    {4, 8},     {3, 15},
                          {3, 16},    {3, 17},   {7, 33},   {2, 65},    {64, 10},
                          {60, 10},   {5, 256},  {33, 700}, {3, 1025},  {3, 9001},
                          {2000, 10}, {2, 8192}, {2, 8193}, {1, 50001}, {2, 300}},
      few{{1, 1},   {3, 2},    {5, 7},    {3, 17},   {7, 33},   {2, 65},   {64, 10}, {60, 10},
          {5, 256}, {33, 700}, {3, 1024}, {3, 1025}, {300, 10}, {2, 5001}, {3, 9001}};
  return on_cuda() ? few : all;
}

std::vector<double> reference(const Buffer& x, std::int64_t row, std::int64_t n, bool log) {
  double max = -kInf;
  long double sum = 0;  // more digits than float64, since the reference adds sequentially
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

// The error of one result: a few units of the computation's dtype, |x - max| units from the
// exponential, and the rounding of 16-bit dtypes.
double tolerance(DType t, double expected, bool log, double largest) {
  return (32 + 2 * largest) * unit(t) * (log ? largest + 20 : std::fabs(expected)) +
         (t == DType::float64 ? 1e-300 : 1e-38) + half_ulp(t, expected);
}

void run(bool log, const Buffer& x, Buffer& y, std::int64_t rows, std::int64_t n) {
  kernels().softmax({x.dtype(), log, x.data(), y.data(), rows, n}, stream());
}
void run_backward(bool log, const Buffer& y, const Buffer& dy, Buffer& dx, std::int64_t rows,
                  std::int64_t n) {
  kernels().softmax_backward({y.dtype(), log, y.data(), dy.data(), dx.data(), rows, n}, stream());
}

}  // namespace

TEST_CASE("softmax: every dtype, shape and alignment", "[kernels][softmax]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : shapes())
        for (const std::int64_t shift : {0, 1})
          for (const double scale : {1.0, 20.0}) {
            INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n << " shift "
                                   << shift << " scale " << scale);
            Buffer x(t, rows * n, shift), y(t, rows * n, shift);
            x.pattern(1, scale);
            run(log, x, y, rows, n);
            std::int64_t wrong = 0;
            for (std::int64_t row = 0; row < rows; ++row) {
              const auto expected = reference(x, row, n, log);
              for (std::int64_t i = 0; i < n; ++i) {
                const double e = expected[static_cast<std::size_t>(i)];
                wrong += !(std::fabs(y[row * n + i] - e) <= tolerance(t, e, log, 2 * scale));
              }
            }
            CHECK(wrong == 0);
          }
}

TEST_CASE("softmax_backward: every dtype and shape", "[kernels][softmax]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const bool log : {false, true})
      for (const auto& [rows, n] : shapes()) {
        INFO(braid::name_of(t) << " log " << log << " " << rows << " x " << n);
        Buffer x(t, rows * n), y(t, rows * n), dy(t, rows * n, 1), dx(t, rows * n);
        x.pattern(4), dy.pattern(5);
        run(log, x, y, rows, n);
        run_backward(log, y, dy, dx, rows, n);
        std::int64_t wrong = 0;
        for (std::int64_t first = 0; first < x.size(); first += n) {
          double sum = 0, magnitude = 0;
          for (std::int64_t i = first; i < first + n; ++i) {
            const double v = log ? dy[i] : y[i] * dy[i];
            sum += v, magnitude += std::fabs(v);
          }
          for (std::int64_t i = first; i < first + n; ++i) {
            const double expected = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
            const double scale = log ? std::fabs(dy[i]) + std::exp(y[i]) * magnitude
                                     : std::fabs(y[i]) * (std::fabs(dy[i]) + magnitude);
            wrong += !(std::fabs(dx[i] - expected) <=
                       32 * unit(t) * scale + half_ulp(t, expected) + 1e-38);
          }
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("softmax: rows of NaN, of infinities, and with some of them", "[kernels][softmax]") {
  NEEDS_DEVICE;
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
        // row 5: all -inf but the last
        for (std::int64_t i = 0; i + 1 < n; ++i) x.put(5 * n + i, -kInf);
        run(log, x, y, rows, n);
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
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const bool log : {false, true}) {
      for (const auto& shape : shapes()) {
        // not a structured binding: clang 14 cannot capture one
        const auto rows = shape.first, n = shape.second;
        Buffer x(t, rows * n), y(t, rows * n);
        x.pattern(3);
        check_threads(y, [&] { run(log, x, y, rows, n); });
        run(log, x, x, rows, n);
        CHECK(x.bytes() == y.bytes());
        x.pattern(3);
        Buffer beside(t, rows * n, 1);  // x and y are at different distances from 16 bytes
        run(log, x, beside, rows, n);
        CHECK(beside.bytes() == y.bytes());
        Buffer dy(t, rows * n, 1), dx(t, rows * n);
        dy.pattern(5);
        check_threads(dx, [&] { run_backward(log, y, dy, dx, rows, n); });
        run_backward(log, y, dy, dy, rows, n);
        CHECK(dy.bytes() == dx.bytes());
      }
      Buffer none(t, 0);
      run(log, none, none, 0, 5);
      run(log, none, none, 5, 0);
      run_backward(log, none, none, none, 0, 3);
    }
}

TEST_CASE("softmax: outputs larger than the caches", "[kernels][softmax]") {
  if (on_cuda() || BRAID_SANITIZED) return;
  const std::int64_t rows = 40000, n = 1024, row_bytes = n * 4;  // 160 MiB
  Buffer x(DType::float32, rows * n), y(DType::float32, rows * n), row_x(DType::float32, n),
      row_y(DType::float32, n);
  auto* const numbers = static_cast<float*>(x.host());
  for (std::int64_t i = 0; i < x.size(); ++i) numbers[i] = static_cast<float>(i % 1021) * 0.01f;
  for (const bool log : {false, true}) {
    run(log, x, y, rows, n);
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < rows; row += 97) {
      std::memcpy(row_x.host(), numbers + row * n, row_bytes);
      run(log, row_x, row_y, 1, n);
      wrong += std::memcmp(row_y.host(), static_cast<float*>(y.host()) + row * n, row_bytes) != 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("softmax: integers are refused by name", "[kernels][softmax]") {
  NEEDS_DEVICE;
  Buffer x(DType::int32, 4), y(DType::int32, 4);
  CHECK_THROWS_AS(run(false, x, y, 2, 2), braid::DTypeError);
  CHECK_THROWS_WITH(run(false, x, y, 2, 2), "softmax: expected a floating-point dtype, got int32");
}
