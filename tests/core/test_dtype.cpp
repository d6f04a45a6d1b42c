#include <bit>

#include "reference/rounding.hpp"
#include "shorthand.hpp"

namespace braid::test {
namespace {

using reference::Format;

/// Checks every pattern of a 16-bit dtype: its conversion to float and back, and its value by the
/// definition of the format.
template <class H> void check_patterns(const Format& format) {
  int wrong_value = 0, wrong_return = 0;
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    H h;
    h.bits = static_cast<std::uint16_t>(pattern);
    const float value = static_cast<float>(h);
    const double want = reference::decode16(h.bits, format);
    const H back(value);
    if (std::isnan(want)) {
      wrong_value += !std::isnan(value);
      // a NaN stays a NaN; its payload may change
      wrong_return += !std::isnan(static_cast<float>(back));
      continue;
    }
    wrong_value += static_cast<double>(value) != want || std::signbit(value) != std::signbit(want);
    wrong_return += back.bits != h.bits;
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_return == 0);
}

/// Returns whether H(x) is x rounded to nearest even.
template <class H> bool rounds(float x, const Format& format) {
  const double want = reference::round_to(static_cast<double>(x), format);
  const H got(x);
  if (std::isnan(x)) return std::isnan(static_cast<float>(got));
  return reference::decode16(got.bits, format) == want &&
         ((got.bits & 0x8000) != 0) == std::signbit(x);
}

/// Checks all numbers of the format, the midpoint between each and its successor, and the floats on
/// both sides of each of them. Then checks random floats.
template <class H> void check_rounding(const Format& format) {
  int wrong = 0;
  const auto check_near = [&](float x) {
    for (const float v : {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)})
      wrong += !rounds<H>(v, format) + !rounds<H>(-v, format);
  };
  for (std::uint32_t pattern = 0; pattern < 0x8000; ++pattern) {
    const double x = reference::decode16(static_cast<std::uint16_t>(pattern), format);
    if (!std::isfinite(x)) break;
    check_near(static_cast<float>(x));
    check_near(static_cast<float>(x + reference::ulp(x, format) / 2));
    check_near(static_cast<float>(x + reference::ulp(x, format) / 4));
  }
  Numbers numbers(3);
  for (int i = 0; i < 300000; ++i)
    wrong += !rounds<H>(std::bit_cast<float>(static_cast<std::uint32_t>(numbers.bits())), format);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("dtype: sizes, names and kinds", "[dtype]") {
  const std::vector<std::string> names{"bool",    "uint8",    "int32",   "int64",
                                       "float16", "bfloat16", "float32", "float64"};
  const std::vector<std::size_t> sizes{1, 1, 4, 8, 2, 2, 4, 8};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const DType t = all_dtypes()[i];
    CHECK(std::string(name_of(t)) == names[i]);
    CHECK(str(t) == names[i]);
    CHECK(size_of(t) == sizes[i]);
    CHECK(is_floating(t) == (i >= 4));
    CHECK(is_integral(t) == (i >= 1 && i < 4));
  }
  CHECK(kDTypeCount == static_cast<int>(names.size()));
  CHECK(dtype_of<bool> == DType::bool_);
  CHECK(dtype_of<std::uint8_t> == DType::uint8);
  CHECK(dtype_of<std::int32_t> == DType::int32);
  CHECK(dtype_of<std::int64_t> == DType::int64);
  CHECK(dtype_of<float16> == DType::float16);
  CHECK(dtype_of<bfloat16> == DType::bfloat16);
  CHECK(dtype_of<float> == DType::float32);
  CHECK(dtype_of<double> == DType::float64);
}

TEST_CASE("dtype: all 65536 patterns of the 16-bit types go to float and back", "[dtype]") {
  check_patterns<float16>(reference::kFloat16);
  check_patterns<bfloat16>(reference::kBfloat16);
}
TEST_CASE("dtype: the 16-bit types round to nearest even", "[dtype]") {
  check_rounding<float16>(reference::kFloat16);
  check_rounding<bfloat16>(reference::kBfloat16);
}

TEST_CASE("dtype: edges of the 16-bit types", "[dtype]") {
  for (const auto& [x, bits] :
       std::vector<std::pair<float, int>>{{65504.0f, 0x7bff},
                                          {65519.99f, 0x7bff},
                                          {65520.0f, 0x7c00},  // a tie that rounds to infinity
                                          {0x1p-24f, 1},
                                          {0x1p-25f, 0},  // a tie that rounds to 0
                                          {std::nextafter(0x1p-25f, 1.0f), 1},
                                          {-0.0f, 0x8000},
                                          {-INFINITY, 0xfc00}})
    CHECK(float16(x).bits == bits);
  for (const auto& [x, bits] :
       std::vector<std::pair<float, int>>{{1.0f, 0x3f80},
                                          {std::numeric_limits<float>::max(), 0x7f80},
                                          {-0.0f, 0x8000},
                                          {INFINITY, 0x7f80}})
    CHECK(bfloat16(x).bits == bits);
  // A NaN whose payload is only in the truncated bits stays a NaN.
  CHECK(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(static_cast<float>(float16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(static_cast<float>(float16(std::bit_cast<float>(0xffc00000u)))));
}

}  // namespace braid::test
