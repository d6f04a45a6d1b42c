#include <braid/core/kernel_args/loss.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::CrossEntropyArgs;
using braid::CrossEntropyBackwardArgs;

namespace {

const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes{
    {1, 1},   {1, 7},    {3, 2},     {64, 10},   {17, 16}, {17, 17},
    {5, 300}, {2, 8193}, {1, 40000}, {3001, 10}, {2048, 3}};

struct Problem {
  Buffer x, lse, sum, dy, dx;
  std::vector<std::int64_t> labels;
  std::int64_t stride;
  CrossEntropyArgs forward;
  CrossEntropyBackwardArgs backward;

  Problem(DType t, std::int64_t rows, std::int64_t n, std::int64_t label_stride, double scale)
      : x(t, rows * n, 1),
        lse(t == DType::float64 ? t : DType::float32, rows),
        sum(t, 1),
        dy(t, 1),
        dx(t, rows * n),
        labels(static_cast<std::size_t>(rows * label_stride + 1), -99),
        stride(label_stride) {
    x.pattern(1, 3);
    dy.put(0, 1.5);
    for (std::int64_t r = 0; r < rows; ++r)
      labels[static_cast<std::size_t>(r * stride)] = (r * 7 + n / 2) % n;
    forward = {.dtype = t,
               .x = x.data(),
               .labels = labels.data(),
               .label_stride = stride,
               .lse = lse.data(),
               .sum = sum.data(),
               .scale = scale,
               .rows = rows,
               .n = n};
    backward = {.dtype = t,
                .x = x.data(),
                .labels = labels.data(),
                .label_stride = stride,
                .lse = lse.data(),
                .dy = dy.data(),
                .dx = dx.data(),
                .scale = scale,
                .rows = rows,
                .n = n};
  }
  [[nodiscard]] std::int64_t label(std::int64_t row) const {
    return labels[static_cast<std::size_t>(row * stride)];
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

double unit(DType t) { return t == DType::float64 ? 0x1p-53 : 0x1p-24; }
double half_ulp(DType t, double x) {
  return t == DType::float16 || t == DType::bfloat16 ? 0.51 * ulp(t, x) : 0;
}

}  // namespace

TEST_CASE("cross_entropy: every dtype and shape, any number of threads",
          "[kernels][cross_entropy]") {
  for (const DType t : kFloats)
    for (const auto& [rows, n] : kShapes)
      for (const std::int64_t stride : {1, 3}) {
        INFO(braid::name_of(t) << " " << rows << " x " << n << " label stride " << stride);
        const double scale = 1.0 / static_cast<double>(rows);
        Problem p(t, rows, n, stride, scale);
        check_threads(p.sum, [&] { kernels().cross_entropy(p.forward, stream()); });
        check_threads(p.lse, [&] { kernels().cross_entropy(p.forward, stream()); });
        double expected = 0, magnitude = 0;
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double lse = log_sum_exp(p.x, row, n);
          wrong += !(std::fabs(p.lse[row] - lse) <= 32 * unit(t) * (std::fabs(lse) + 1));
          expected += (lse - p.x[row * n + p.label(row)]) * scale;
          magnitude += (std::fabs(lse) + std::fabs(p.x[row * n + p.label(row)]) + 1) * scale;
        }
        CHECK(wrong == 0);
        CHECK(std::fabs(p.sum[0] - expected) <= 32 * unit(t) * magnitude + half_ulp(t, expected));

        check_threads(p.dx, [&] { kernels().cross_entropy_backward(p.backward, stream()); });
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t i = 0; i < n; ++i) {
            const double exponential = std::exp(p.x[row * n + i] - p.lse[row]),
                         hot = i == p.label(row) ? 1 : 0;
            const double e = (exponential - hot) * scale * 1.5;
            wrong += !(std::fabs(p.dx[row * n + i] - e) <=
                       64 * unit(t) * (exponential + hot) * scale * 1.5 + half_ulp(t, e) + 1e-40);
          }
        CHECK(wrong == 0);
        CHECK((p.lse.guards_intact() && p.sum.guards_intact() && p.dx.guards_intact()));
        p.backward.dx = p.x.data();  // the gradient may take the logits' place
        kernels().cross_entropy_backward(p.backward, stream());
        CHECK(p.x.bytes() == p.dx.bytes());
      }
}

TEST_CASE("cross_entropy: a label outside the classes is refused before anything is written",
          "[kernels][cross_entropy]") {
  for (const std::int64_t bad :
       {std::int64_t{-1}, std::int64_t{10}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    Problem p(DType::float32, 64, 10, 1, 1);
    p.labels[63] = bad;
    const auto lse = p.lse.bytes(), sum = p.sum.bytes(), dx = p.dx.bytes();
    CHECK_THROWS_AS(kernels().cross_entropy(p.forward, stream()), braid::IndexError);
    CHECK_THROWS_WITH(
        kernels().cross_entropy(p.forward, stream()),
        braid::str("cross_entropy: expected labels in [0, 10), got ", bad, " at position 63"));
    CHECK_THROWS_AS(kernels().cross_entropy_backward(p.backward, stream()), braid::IndexError);
    CHECK(p.lse.bytes() == lse);
    CHECK(p.sum.bytes() == sum);
    CHECK(p.dx.bytes() == dx);
  }
}

TEST_CASE("cross_entropy: infinities, NaN and no rows", "[kernels][cross_entropy]") {
  for (const DType t : kFloats) {
    Problem p(t, 4, 5, 1, 1);
    for (int i = 0; i < 5; ++i) p.x.put(i, -kInf);  // row 0: only -inf
    p.x.put(5 + 4, kNaN);                           // row 1: a NaN
    // row 2: an impossible class that is not the label
    p.x.put(10 + (p.label(2) + 1) % 5, -kInf);
    kernels().cross_entropy(p.forward, stream());
    CHECK(std::isnan(p.lse[0]));
    CHECK(std::isnan(p.lse[1]));
    CHECK(std::isfinite(p.lse[2]));
    CHECK(std::isnan(p.sum[0]));
    Problem impossible(t, 1, 5, 1, 1);
    impossible.x.put(impossible.label(0), -kInf);
    kernels().cross_entropy(impossible.forward, stream());
    CHECK(impossible.sum[0] == kInf);
    Problem none(t, 0, 5, 1, 1);
    kernels().cross_entropy(none.forward, stream());
    CHECK(none.sum[0] == 0);
    kernels().cross_entropy_backward(none.backward, stream());
  }
  Problem p(DType::float32, 1, 2, 1, 1);
  p.forward.dtype = DType::int64;
  CHECK_THROWS_WITH(kernels().cross_entropy(p.forward, stream()),
                    "cross_entropy: expected a floating-point dtype, got int64");
}
