// float16 and bfloat16 of the emulation have the same bits as those of braid/core, which
// tests/core/test_dtype.cpp compares with plain definitions.
#include <bit>
#include <cmath>
#include <cstdint>

#include <braid/core/dtype.hpp>

#include "simt/half.hpp"
#include "support/check.hpp"

namespace braid::simt_tests {

namespace {

/// Converts every bit pattern to float and back, and also the midpoints between neighbours and the
/// floats next to each midpoint.
template <class T, class Known> void check_all() {
  int wrong_value = 0, wrong_back = 0, wrong_middle = 0;
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    T h;
    Known known, after;
    h.bits = known.bits = static_cast<std::uint16_t>(bits);
    after.bits = static_cast<std::uint16_t>(bits + 1);
    const float want = float(known), got = float(h), next = float(after);
    if (std::isnan(want)) {
      wrong_value += !std::isnan(got);
      wrong_back += !std::isnan(float(T(got)));
      continue;
    }
    wrong_value += std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(want);
    wrong_back += T(got).bits != bits;
    if (!std::isfinite(want) || !std::isfinite(next)) continue;
    const auto middle = static_cast<float>((static_cast<double>(want) + next) / 2);
    for (const float x : {middle, std::nextafter(middle, next), std::nextafter(middle, want)})
      wrong_middle += T(x).bits != Known(x).bits;
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_back == 0);
  CHECK(wrong_middle == 0);
}

}  // namespace

TEST_CASE("simt: the 16-bit types have the values and the rounding of braid's", "[half]") {
  check_all<simt::half_t, float16>();
  check_all<simt::bfloat16_t, bfloat16>();
  for (const float x : {65504.0f, 65519.9f, 65520.0f, -1e10f, 0x1p-25f, -0.0f, 3.4e38f}) {
    CHECK(simt::half_t(x).bits == float16(x).bits);
    CHECK(simt::bfloat16_t(x).bits == bfloat16(x).bits);
  }
  CHECK(simt::half_t(65520.0f).bits == 0x7c00);
  CHECK(simt::bfloat16_t(3.4e38f).bits == 0x7f80);
}

TEST_CASE("simt: 16-bit arithmetic rounds once", "[half]") {
  const simt::half_t a(1.0f), b(0x1p-11f), c(0x1p-10f);
  CHECK((a + b).bits == a.bits);  // a tie, rounded to even
  CHECK(float(a + c) == 1.0f + 0x1p-10f);
  CHECK(float(simt::half_t(3) * simt::half_t(2.5f)) == 7.5f);
  CHECK(float(-a) == -1.0f);
  CHECK(a > b);
  simt::bfloat16_t s(1.0f);
  s += simt::bfloat16_t(2.0f);
  CHECK(float(s) == 3.0f);
  CHECK(float(__hadd2(__floats2half2_rn(1, 2), __floats2half2_rn(3, 4)).y) == 6.0f);
}

}  // namespace braid::simt_tests
