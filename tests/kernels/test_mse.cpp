#include <braid/core/kernel_args/loss.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::MseArgs;
using braid::MseBackwardArgs;

namespace {

double unit(DType t) { return t == DType::float64 ? 0x1p-53 : 0x1p-24; }
double half_ulp(DType t, double x) {
  return t == DType::float16 || t == DType::bfloat16 ? 0.51 * ulp(t, x) : 0;
}

}  // namespace

TEST_CASE("mse: every dtype, size and alignment, any number of threads", "[kernels][mse]") {
  for (const DType t : kFloats)
    for (const std::int64_t n : kSizes)
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " n " << n << " shift " << shift);
        Buffer a(t, n, shift), b(t, n, 2 * shift), sum(t, 1), dy(t, 1), da(t, n, shift);
        a.pattern(1), b.pattern(2), dy.put(0, 0.75);
        const double scale = n == 0 ? 1 : 1.0 / static_cast<double>(n);
        check_threads(sum, [&] {
          kernels().mse(MseArgs{.dtype = t,
                                .a = a.data(),
                                .b = b.data(),
                                .sum = sum.data(),
                                .scale = scale,
                                .n = n},
                        stream());
        });
        long double exact = 0;
        for (std::int64_t i = 0; i < n; ++i)
          exact += static_cast<long double>((a[i] - b[i]) * (a[i] - b[i])) * scale;
        const double expected = static_cast<double>(exact);
        const double log2n = n > 1 ? std::ceil(std::log2(static_cast<double>(n))) : 0;
        CHECK(std::fabs(sum[0] - expected) <=
              (log2n + 5) * unit(t) * expected + half_ulp(t, expected));

        check_threads(da, [&] {
          kernels().mse_backward(MseBackwardArgs{.dtype = t,
                                                 .a = a.data(),
                                                 .b = b.data(),
                                                 .dy = dy.data(),
                                                 .da = da.data(),
                                                 .scale = scale,
                                                 .n = n},
                                 stream());
        });
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double e = 2 * scale * 0.75 * (a[i] - b[i]);
          wrong += !(std::fabs(da[i] - e) <= 4 * unit(t) * std::fabs(e) + half_ulp(t, e));
        }
        CHECK(wrong == 0);
        CHECK((sum.guards_intact() && da.guards_intact()));
      }
}

TEST_CASE("mse: NaN and infinities at any position", "[kernels][mse]") {
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 16, 37, 300})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        Buffer a(t, n), b(t, n), sum(t, 1);
        a.pattern(1), b.pattern(2);
        const MseArgs args{
            .dtype = t, .a = a.data(), .b = b.data(), .sum = sum.data(), .scale = 1, .n = n};
        a.put(at, kNaN);
        kernels().mse(args, stream());
        CHECK(std::isnan(sum[0]));
        a.put(at, -kInf);
        kernels().mse(args, stream());
        CHECK(sum[0] == kInf);
      }
}

TEST_CASE("mse: integers are refused by name", "[kernels][mse]") {
  Buffer a(DType::int32, 4), sum(DType::int32, 1);
  const MseArgs args{
      .dtype = DType::int32, .a = a.data(), .b = a.data(), .sum = sum.data(), .scale = 1, .n = 4};
  CHECK_THROWS_AS(kernels().mse(args, stream()), braid::DTypeError);
  CHECK_THROWS_WITH(kernels().mse(args, stream()),
                    "mse: expected a floating-point dtype, got int32");
}
