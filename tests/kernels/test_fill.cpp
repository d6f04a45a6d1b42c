#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;

namespace {

void run_fill(Buffer& out, double value, std::int64_t integer, const Loop& loop) {
  kernels().fill({out.dtype(), out.data(), value, integer, loop}, stream());
}

void check_fill(DType t, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
  Buffer out(t, extent(loop, 0), shift);
  const auto before = out.pattern(1).bytes();
  run_fill(out, 3.3, 3, loop);
  const double expected = t == DType::bool_ ? 1 : braid::is_floating(t) ? rounded(t, 3.3) : 3;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) wrong += out[offset(loop, 0, i)] != expected;
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("fill: every dtype, size and layout", "[kernels][fill]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t shift : {0, 1}) {
      for (const std::int64_t n : sizes()) check_fill(t, dense(n), shift);
      for (const Loop& loop : {strided({4, 5}, {{15, 2}}), strided({}, {{}})})
        check_fill(t, loop, shift);
    }
}

TEST_CASE("fill: int64 takes all 64 bits, signs of zero and NaN are kept", "[kernels][fill]") {
  NEEDS_DEVICE;
  const std::int64_t value = std::numeric_limits<std::int64_t>::min() + 1;
  Buffer wide(DType::int64, 19);
  run_fill(wide, 0, value, dense(19));
  for (int i = 0; i < 19; ++i) CHECK(static_cast<std::int64_t*>(wide.host())[i] == value);
  for (const DType t : kFloats) {
    Buffer out(t, 19);
    run_fill(out, -0.0, 0, dense(19));
    CHECK((out[0] == 0 && std::signbit(out[0]) && std::signbit(out[18])));
    run_fill(out, kNaN, 0, dense(19));
    CHECK((std::isnan(out[0]) && std::isnan(out[18])));
  }
}
