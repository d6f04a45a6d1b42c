#include <braid/core/kernel_args/loss.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::CrossEntropyArgs;
using braid::CrossEntropyBackwardArgs;
using braid::MseArgs;
using braid::MseBackwardArgs;

namespace {

const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes{
    {1, 1},   {1, 7},   {3, 2},    {64, 10},  {17, 16},
    {17, 17}, {5, 300}, {2, 1025}, {601, 10}, {5000, 3}};

struct Problem {
  Buffer x, lse, sum, dy, dx;
  std::vector<std::int64_t> labels;
  std::int64_t stride, rows, n;
  double scale;

  Problem(DType t, std::int64_t rows_, std::int64_t n_, std::int64_t label_stride, double scale_)
      : x(t, rows_ * n_),
        lse(t == DType::float64 ? t : DType::float32, rows_),
        sum(t, 1),
        dy(t, 1),
        dx(t, rows_ * n_),
        labels(static_cast<std::size_t>(rows_ * label_stride + 1), -99),
        stride(label_stride),
        rows(rows_),
        n(n_),
        scale(scale_) {
    x.pattern(1, 3);
    dy.put(0, 1.5);
    for (std::int64_t r = 0; r < rows; ++r)
      labels[static_cast<std::size_t>(r * stride)] = (r * 7 + n / 2) % n;
  }
  [[nodiscard]] std::int64_t label(std::int64_t row) const {
    return labels[static_cast<std::size_t>(row * stride)];
  }
  /// Both passes; the gradient takes the logits' place if asked to.
  void run(bool in_place = false) {
    Twin gx(x, 1), glse(lse), gsum(sum), gdy(dy), gdx(dx);
    const IndexTwin index(labels);
    gpu().cross_entropy(CrossEntropyArgs{.dtype = x.dtype(),
                                         .x = gx.data(),
                                         .labels = index.data(),
                                         .label_stride = stride,
                                         .lse = glse.data(),
                                         .sum = gsum.data(),
                                         .scale = scale,
                                         .rows = rows,
                                         .n = n},
                        gpu_stream());
    gpu().cross_entropy_backward(CrossEntropyBackwardArgs{.dtype = x.dtype(),
                                                          .x = gx.data(),
                                                          .labels = index.data(),
                                                          .label_stride = stride,
                                                          .lse = glse.data(),
                                                          .dy = gdy.data(),
                                                          .dx = in_place ? gx.data() : gdx.data(),
                                                          .scale = scale,
                                                          .rows = rows,
                                                          .n = n},
                                 gpu_stream());
    gpu_stream().synchronize();
    glse.fetch(), gsum.fetch();
    if (in_place) gx.fetch();
    else gdx.fetch();
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

}  // namespace

TEST_CASE("cuda cross_entropy: every dtype and shape", "[cuda_kernels][loss]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const auto& [rows, n] : kShapes)
      for (const std::int64_t stride : {1, 3}) {
        INFO(braid::name_of(t) << " " << rows << " x " << n << " label stride " << stride);
        Problem p(t, rows, n, stride, 1.0 / static_cast<double>(rows));
        p.run();
        double expected = 0, magnitude = 0;
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double lse = log_sum_exp(p.x, row, n);
          wrong += !(std::fabs(p.lse[row] - lse) <= 32 * unit(t) * (std::fabs(lse) + 1));
          expected += (lse - p.x[row * n + p.label(row)]) * p.scale;
          magnitude += (std::fabs(lse) + std::fabs(p.x[row * n + p.label(row)]) + 1) * p.scale;
          for (std::int64_t i = 0; i < n; ++i) {
            const double exponential = std::exp(p.x[row * n + i] - p.lse[row]),
                         hot = i == p.label(row) ? 1 : 0;
            const double e = (exponential - hot) * p.scale * 1.5;
            wrong += !(std::fabs(p.dx[row * n + i] - e) <=
                       64 * unit(t) * (exponential + hot) * p.scale * 1.5 + half_ulp(t, e) + 1e-40);
          }
        }
        CHECK(wrong == 0);
        CHECK(std::fabs(p.sum[0] - expected) <= 32 * unit(t) * magnitude + half_ulp(t, expected));
        const auto apart = p.dx.bytes();
        p.run(true);
        CHECK(p.x.bytes() == apart);
      }
}

TEST_CASE(
    "cuda cross_entropy: a label outside the classes is thrown at the next wait, and harms nothing",
    "[cuda_kernels][loss]") {
  NEEDS_GPU;
  for (const std::int64_t bad :
       {std::int64_t{-1}, std::int64_t{10}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    Problem p(DType::float32, 40, 10, 2, 1);
    p.labels[2 * 7] = bad;
    const std::string expected =
        braid::str("cross_entropy: expected labels in [0, 10), got ", bad, " at position 7");
    CHECK_THROWS_AS(p.run(), braid::IndexError);
    CHECK_THROWS_WITH(p.run(), expected);
    p.labels[2 * 7] = 3;
    p.run();
    CHECK(std::isfinite(p.sum[0]));
  }
}

TEST_CASE("cuda cross_entropy: rows of infinities and NaN, and no rows", "[cuda_kernels][loss]") {
  NEEDS_GPU;
  for (const DType t : kFloats) {
    Problem p(t, 4, 5, 1, 1);
    for (int i = 0; i < 5; ++i) p.x.put(i, -kInf);
    p.x.put(5 + 4, kNaN);
    p.x.put(10 + (p.label(2) + 1) % 5, -kInf);
    p.run();
    CHECK((std::isnan(p.lse[0]) && std::isnan(p.lse[1]) && std::isfinite(p.lse[2]) &&
           std::isnan(p.sum[0])));
    Problem impossible(t, 1, 5, 1, 1);
    impossible.x.put(impossible.label(0), -kInf);
    impossible.run();
    CHECK(impossible.sum[0] == kInf);
    Problem none(t, 0, 5, 1, 1);
    none.run();
    CHECK(none.sum[0] == 0);
  }
  CrossEntropyArgs args{};
  args.dtype = DType::int64;
  CHECK_THROWS_WITH(gpu().cross_entropy(args, gpu_stream()),
                    "cross_entropy: expected a floating-point dtype, got int64");
}

TEST_CASE("cuda mse: every dtype, size and alignment", "[cuda_kernels][loss]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const std::int64_t n : {0, 1, 17, 512, 513, 4097, 10007})
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " n " << n << " shift " << shift);
        Buffer a(t, n), b(t, n), sum(t, 1), dy(t, 1), da(t, n);
        a.pattern(1), b.pattern(2), dy.put(0, 0.75);
        const double scale = n == 0 ? 1 : 1.0 / static_cast<double>(n);
        Twin ga(a, shift), gb(b, 2 * shift), gsum(sum), gdy(dy), gda(da, shift);
        gpu().mse(MseArgs{.dtype = t,
                          .a = ga.data(),
                          .b = gb.data(),
                          .sum = gsum.data(),
                          .scale = scale,
                          .n = n},
                  gpu_stream());
        gpu().mse_backward(MseBackwardArgs{.dtype = t,
                                           .a = ga.data(),
                                           .b = gb.data(),
                                           .dy = gdy.data(),
                                           .da = gda.data(),
                                           .scale = scale,
                                           .n = n},
                           gpu_stream());
        gsum.fetch(), gda.fetch();
        long double exact = 0;
        for (std::int64_t i = 0; i < n; ++i)
          exact += static_cast<long double>((a[i] - b[i]) * (a[i] - b[i])) * scale;
        const double expected = static_cast<double>(exact),
                     log2n = n > 1 ? std::ceil(std::log2(static_cast<double>(n))) : 0;
        CHECK(std::fabs(sum[0] - expected) <=
              (log2n + 5) * unit(t) * expected + half_ulp(t, expected));
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double e = 2 * scale * 0.75 * (a[i] - b[i]);
          wrong += !(std::fabs(da[i] - e) <= 4 * unit(t) * std::fabs(e) + half_ulp(t, e));
        }
        CHECK(wrong == 0);
      }
  MseArgs args{};
  args.dtype = DType::int32;
  CHECK_THROWS_WITH(gpu().mse(args, gpu_stream()),
                    "mse: expected a floating-point dtype, got int32");
}
