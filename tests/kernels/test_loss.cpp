#include <algorithm>

#include <braid/core/internal/kernel_args/loss.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;

namespace {

using Shapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
const Shapes& shapes() {
  static const Shapes all{{1, 1},   {1, 7},    {3, 2},     {64, 10},   {17, 16}, {17, 17},
                          {5, 300}, {2, 8193}, {1, 40000}, {3001, 10}, {2048, 3}},
      few{{1, 1},   {1, 7},   {3, 2},    {64, 10},  {17, 16},
          {17, 17}, {5, 300}, {2, 1025}, {601, 10}, {5000, 3}};
  return on_cuda() ? few : all;
}

struct Problem {
  Buffer x, lse, sum, dy, dx, labels;
  std::int64_t stride, rows, n;
  double scale;

  Problem(DType t, std::int64_t rows_, std::int64_t n_, std::int64_t label_stride, double scale_)
      : x(t, rows_ * n_, 1),
        lse(t == DType::float64 ? t : DType::float32, rows_),
        sum(t, 1),
        dy(t, 1),
        dx(t, rows_ * n_),
        labels(DType::int64, rows_ * label_stride + 1),
        stride(label_stride),
        rows(rows_),
        n(n_),
        scale(scale_) {
    x.pattern(1, 3), dy.fill(1.5), labels.fill(-99);
    for (std::int64_t r = 0; r < rows; ++r)
      labels.put(r * stride, static_cast<double>((r * 7 + n / 2) % n));
  }
  [[nodiscard]] std::int64_t label(std::int64_t row) const {
    return static_cast<std::int64_t>(labels[row * stride]);
  }
  void forward() {
    kernels().cross_entropy(
        {x.dtype(), x.data(), labels.integers(), stride, lse.data(), sum.data(), scale, rows, n},
        stream());
  }
  /// The gradient may overwrite the logits.
  void backward(Buffer& to) {
    kernels().cross_entropy_backward({x.dtype(), x.data(), labels.integers(), stride, lse.data(),
                                      dy.data(), to.data(), scale, rows, n},
                                     stream());
  }
};

double log_sum_exp(const Buffer& x, std::int64_t row, std::int64_t n) {
  double max = -kInf;
  long double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) max = std::max(max, x[row * n + i]);
  for (std::int64_t i = 0; i < n; ++i)
    sum += std::exp(static_cast<long double>(x[row * n + i] - max));
  return max + static_cast<double>(std::log(sum));
}

void run_mse(const Buffer& a, const Buffer& b, Buffer& sum, double scale) {
  kernels().mse({a.dtype(), a.data(), b.data(), sum.data(), scale, a.size()}, stream());
}

}  // namespace

TEST_CASE("cross_entropy: every dtype and shape, any number of threads, the gradient in place",
          "[kernels][loss]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const auto& shape : shapes())
      for (const std::int64_t stride : {1, 3}) {
        const auto rows = shape.first, n = shape.second;
        INFO(braid::name_of(t) << " " << rows << " x " << n << " label stride " << stride);
        const double scale = 1.0 / static_cast<double>(rows);
        Problem p(t, rows, n, stride, scale);
        check_threads(p.sum, [&] { p.forward(); });
        check_threads(p.lse, [&] { p.forward(); });
        check_threads(p.dx, [&] { p.backward(p.dx); });
        double expected = 0, magnitude = 0;
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double lse = log_sum_exp(p.x, row, n), x = p.x[row * n + p.label(row)];
          wrong += !(std::fabs(p.lse[row] - lse) <= 32 * unit(t) * (std::fabs(lse) + 1));
          expected += (lse - x) * scale;
          magnitude += (std::fabs(lse) + std::fabs(x) + 1) * scale;
          for (std::int64_t i = 0; i < n; ++i) {
            const double exponential = std::exp(p.x[row * n + i] - p.lse[row]),
                         hot = i == p.label(row) ? 1 : 0, e = (exponential - hot) * scale * 1.5;
            wrong += !(std::fabs(p.dx[row * n + i] - e) <=
                       64 * unit(t) * (exponential + hot) * scale * 1.5 + half_ulp(t, e) + 1e-40);
          }
        }
        CHECK(wrong == 0);
        CHECK(std::fabs(p.sum[0] - expected) <= 32 * unit(t) * magnitude + half_ulp(t, expected));
        p.backward(p.x);
        CHECK(p.x.bytes() == p.dx.bytes());
      }
}

TEST_CASE("cross_entropy: a label outside the classes is refused, on the CPU before it writes",
          "[kernels][loss]") {
  NEEDS_DEVICE;
  for (const std::int64_t bad :
       {std::int64_t{-1}, std::int64_t{10}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()})
    for (const std::int64_t row : {7, 63}) {
      Problem p(DType::float32, 64, 10, 2, 1);
      static_cast<std::int64_t*>(p.labels.host())[2 * row] = bad;
      const auto lse = p.lse.bytes(), sum = p.sum.bytes(), dx = p.dx.bytes();
      const std::string text =
          braid::str("cross_entropy: expected labels in [0, 10), got ", bad, " at position ", row);
      // CUDA throws at the next wait, and still works after that.
      const auto run = [&](bool backward) {
        if (backward) p.backward(p.dx);
        else p.forward();
        if (on_cuda()) stream().synchronize();
      };
      CHECK_THROWS_AS(run(false), braid::IndexError);
      CHECK_THROWS_WITH(run(false), text);
      if (!on_cuda()) {
        CHECK_THROWS_AS(run(true), braid::IndexError);
        CHECK((p.lse.bytes() == lse && p.sum.bytes() == sum && p.dx.bytes() == dx));
      }
      p.labels.put(2 * row, 3);
      run(false), run(true);
      CHECK(std::isfinite(p.sum[0]));
    }
}

TEST_CASE("cross_entropy: infinities, NaN and no rows", "[kernels][loss]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats) {
    Problem p(t, 4, 5, 1, 1);
    for (int i = 0; i < 5; ++i) p.x.put(i, -kInf);  // row 0: only -inf
    p.x.put(5 + 4, kNaN);                           // row 1: a NaN
    // row 2: an impossible class that is not the label
    p.x.put(10 + (p.label(2) + 1) % 5, -kInf);
    p.forward();
    CHECK((std::isnan(p.lse[0]) && std::isnan(p.lse[1]) && std::isfinite(p.lse[2]) &&
           std::isnan(p.sum[0])));
    Problem impossible(t, 1, 5, 1, 1);
    impossible.x.put(impossible.label(0), -kInf);
    impossible.forward();
    CHECK(impossible.sum[0] == kInf);
    Problem none(t, 0, 5, 1, 1);
    none.forward();
    CHECK(none.sum[0] == 0);
    none.backward(none.dx);
  }
  Problem p(DType::int64, 1, 2, 1, 1);
  CHECK_THROWS_WITH(p.forward(), "cross_entropy: expected a floating-point dtype, got int64");
}

TEST_CASE("mse: every dtype, size and alignment, any number of threads", "[kernels][loss]") {
  NEEDS_DEVICE;
  Sizes all = sizes();
  if (on_cuda()) all.insert(all.end(), {512, 513, 4097, 10007});
  for (const DType t : kFloats)
    for (const std::int64_t n : all)
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " n " << n << " shift " << shift);
        Buffer a(t, n, shift), b(t, n, 2 * shift), sum(t, 1), dy(t, 1), da(t, n, shift);
        a.pattern(1), b.pattern(2), dy.fill(0.75);
        const double scale = n == 0 ? 1 : 1.0 / static_cast<double>(n);
        check_threads(sum, [&] { run_mse(a, b, sum, scale); });
        check_threads(da, [&] {
          kernels().mse_backward({t, a.data(), b.data(), dy.data(), da.data(), scale, a.size()},
                                 stream());
        });
        long double exact = 0;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double d = a[i] - b[i], e = 2 * scale * 0.75 * d;
          exact += static_cast<long double>(d * d) * scale;
          wrong += !(std::fabs(da[i] - e) <= 4 * unit(t) * std::fabs(e) + half_ulp(t, e));
        }
        CHECK(wrong == 0);
        const double expected = static_cast<double>(exact);
        CHECK(std::fabs(sum[0] - expected) <=
              (log2_up(n) + 5) * unit(t) * expected + half_ulp(t, expected));
      }
}

TEST_CASE("mse: NaN and infinities at any position; integers are refused by name",
          "[kernels][loss]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 16, 37, 300})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        Buffer a(t, n), b(t, n), sum(t, 1);
        a.pattern(1), b.pattern(2);
        a.put(at, kNaN);
        run_mse(a, b, sum, 1);
        CHECK(std::isnan(sum[0]));
        a.put(at, -kInf);
        run_mse(a, b, sum, 1);
        CHECK(sum[0] == kInf);
      }
  Buffer a(DType::int32, 4), sum(DType::int32, 1);
  CHECK_THROWS_AS(run_mse(a, a, sum, 1), braid::DTypeError);
  CHECK_THROWS_WITH(run_mse(a, a, sum, 1), "mse: expected a floating-point dtype, got int32");
}
