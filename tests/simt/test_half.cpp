// float16 and bfloat16 of the emulation: conversions against plain definitions, for every bit
// pattern.
#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/half.hpp"
#include "support/catch.hpp"

namespace braid::simt_tests {

namespace {

// The value of a small binary format, from its definition.
double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1)) /
                        static_cast<double>(1u << mantissa_bits);
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias)
                       : sign * std::ldexp(1 + mantissa, exponent - bias);
}

template <class T> void check_all(int exponent_bits, int mantissa_bits) {
  int wrong_value = 0, wrong_back = 0, wrong_middle = 0;
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    T h;
    h.bits = static_cast<std::uint16_t>(bits);
    const double want = value_of(bits, exponent_bits, mantissa_bits);
    const float got = float(h);
    if (std::isnan(want)) {
      wrong_value += !std::isnan(got);
      wrong_back += !std::isnan(float(T(got)));
      continue;
    }
    wrong_value += !(static_cast<double>(got) == want && std::signbit(got) == std::signbit(want));
    wrong_back += T(got).bits != bits;
    // Half way to the next number up in magnitude: to the even one.
    const std::uint32_t magnitude = bits & 0x7fffu;
    const double next = value_of(bits + 1, exponent_bits, mantissa_bits);
    if (!std::isfinite(want) || !std::isfinite(next)) continue;
    const auto middle = static_cast<float>((want + next) / 2);
    const std::uint32_t even = magnitude % 2 == 0 ? bits : bits + 1;
    wrong_middle += T(middle).bits != even;
    wrong_middle += T(std::nextafter(middle, static_cast<float>(next))).bits != bits + 1;
    wrong_middle += T(std::nextafter(middle, static_cast<float>(want))).bits != bits;
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_back == 0);
  CHECK(wrong_middle == 0);
}

}  // namespace

TEST_CASE("simt: float16 has the values of binary16 and rounds to nearest even", "[half]") {
  check_all<simt::half_t>(5, 10);
  CHECK(simt::half_t(65504.0f).bits == 0x7bff);
  CHECK(simt::half_t(65519.9f).bits == 0x7bff);
  CHECK(simt::half_t(65520.0f).bits == 0x7c00);
  CHECK(simt::half_t(-1e10f).bits == 0xfc00);
  CHECK(simt::half_t(0x1p-25f).bits == 0);
  CHECK(simt::half_t(-0.0f).bits == 0x8000);
}

TEST_CASE("simt: bfloat16 is the upper half of a float, rounded to nearest even", "[half]") {
  check_all<simt::bfloat16_t>(8, 7);
  CHECK(simt::bfloat16_t(3.4e38f).bits == 0x7f80);
}

TEST_CASE("simt: 16-bit arithmetic rounds once", "[half]") {
  const simt::half_t a(1.0f), b(0x1p-11f), c(0x1p-10f);
  CHECK((a + b).bits == a.bits);  // half way, to the even one
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
