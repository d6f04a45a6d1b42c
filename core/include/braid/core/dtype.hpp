#pragma once
#include <bit>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

namespace braid {

/// Element types. Printed as `float32`, `bool`, …
enum class DType : std::uint8_t { bool_, uint8, int32, int64, float16, bfloat16, float32, float64 };
inline constexpr int kDTypeCount = 8;

/// IEEE binary16 (half precision). For storage: arithmetic is done in float. Conversions round to
/// nearest even.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(const float16&, const float16&) = default;
};

/// bfloat16, the upper half of a float. For storage: arithmetic is done in float. Conversions round
/// to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
                          : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  friend bool operator==(const bfloat16&, const bfloat16&) = default;
};

inline float16::float16(float value) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    bits = static_cast<std::uint16_t>(sign | 0x7c00u);
  } else if (magnitude >= 0x38800000u) {  // normal
    const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
    bits = static_cast<std::uint16_t>(sign | (rounded >> 13));
  } else {  // subnormal: adding 0.5 aligns the mantissa and rounds to nearest even
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
  }
}

inline float16::operator float() const noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(rest) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

namespace detail {
  inline constexpr std::uint8_t kDTypeSize[kDTypeCount] = {1, 1, 4, 8, 2, 2, 4, 8}; }
/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType t) noexcept {
  return detail::kDTypeSize[static_cast<int>(t)];
}
[[nodiscard]] constexpr bool is_floating(DType t) noexcept { return t >= DType::float16; }
[[nodiscard]] constexpr bool is_integral(DType t) noexcept {
  return t >= DType::uint8 && t <= DType::int64;
}
/// Returns `float32`, `int64`, `bool`, …
[[nodiscard]] std::string_view name_of(DType t) noexcept;
std::ostream& operator<<(std::ostream& out, DType t);

/// Returns the dtype to which an elementwise operation converts its two operands. It is the later
/// of the two in the order bool < uint8 < int32 < int64 < float16, bfloat16 < float32 < float64;
/// float16 with bfloat16 gives float32. Only the dtypes decide: a tensor without dimensions counts
/// like any other. (In PyTorch a tensor with dimensions wins over one without, within a category:
/// float32 [2] + float64 [] is float64 here, float32 there.)
[[nodiscard]] constexpr DType promote(DType a, DType b) noexcept {
  if ((a == DType::float16 && b == DType::bfloat16) ||
      (a == DType::bfloat16 && b == DType::float16))
    return DType::float32;
  return a < b ? b : a;
}

namespace detail {
/// True for a whole number that fits in int64.
[[nodiscard]] constexpr bool is_whole(double x) noexcept {
  return x >= -0x1p63 && x < 0x1p63 && x == static_cast<double>(static_cast<std::int64_t>(x));
}
}  // namespace detail

/// The DType of a C++ type; compiles only for the eight element types.
template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return DType::uint8;
  else if constexpr (std::is_same_v<T, std::int32_t>) return DType::int32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return DType::int64;
  else if constexpr (std::is_same_v<T, float16>) return DType::float16;
  else if constexpr (std::is_same_v<T, bfloat16>) return DType::bfloat16;
  else if constexpr (std::is_same_v<T, float>) return DType::float32;
  else if constexpr (std::is_same_v<T, double>) return DType::float64;
  else
    static_assert(!sizeof(T*),
                  "braid: not an element type; expected bool, uint8_t, int32_t, int64_t, float16, "
                  "bfloat16, float or double");
}();

/// A C++ type that elements of a tensor can have.
template <class T>
concept Element =
    std::is_same_v<T, bool> || std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace braid
