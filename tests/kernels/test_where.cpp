#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;

namespace {

void check_where(DType t, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
  Buffer c(DType::bool_, extent(loop, 1), shift), a(t, extent(loop, 2), shift),
      b(t, extent(loop, 3), 2 * shift), out(t, extent(loop, 0), shift);
  c.pattern(1), a.pattern(2), b.pattern(3), out.pattern(4);
  if (braid::is_floating(t) && a.size() > 0) a.put(0, kNaN), b.put(b.size() - 1, -0.0);
  const auto before = out.bytes();
  kernels().where({t, out.data(), c.data(), a.data(), b.data(), loop}, stream());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const double expected =
        c[offset(loop, 1, i)] != 0 ? a[offset(loop, 2, i)] : b[offset(loop, 3, i)];
    wrong += !close(t, out[offset(loop, 0, i)], expected, 0);
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("where: every dtype, size, alignment and layout", "[kernels][where]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t shift : {0, 1}) {
      for (const std::int64_t n : sizes()) check_where(t, dense(n), shift);
      for (const Loop& loop : {strided({6, 33}, {{33, 1}, {33, 1}, {0, 1}, {1, 0}}),
                               strided({33, 6}, {{6, 1}, {1, 33}, {6, 1}, {0, 0}}),
                               strided({50}, {{2}, {3}, {1}, {2}}),
                               strided({300, 100}, {{100, 1}, {1, 300}, {100, 1}, {0, 1}}),
                               strided({}, {{}, {}, {}, {}})})
        check_where(t, loop, shift);
    }
}

TEST_CASE("where: bits pass unchanged, NaN and negative zero too", "[kernels][where]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 37}) {
      Buffer c(DType::bool_, n), a(t, n), b(t, n), out(t, n);
      for (std::int64_t i = 0; i < n; ++i) c.put(i, i % 2 == 0);
      a.fill(kNaN), b.fill(-0.0);
      kernels().where({t, out.data(), c.data(), a.data(), b.data(), dense(n)}, stream());
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < n; ++i)
        wrong += i % 2 == 0 ? !std::isnan(out[i]) : !(out[i] == 0 && std::signbit(out[i]));
      CHECK(wrong == 0);
    }
}
