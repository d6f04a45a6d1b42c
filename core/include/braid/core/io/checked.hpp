#pragma once
#include <concepts>
#include <cstdint>
#include <span>

// Arithmetic on numbers that come from a file: the result, or false where it does not fit. Every
// parser uses these and nothing else.
namespace braid::io {

/// a * b, or false if it overflows (result is then unspecified).
template <std::integral T> [[nodiscard]] constexpr bool checked_mul(T a, T b, T& result) noexcept {
  return !__builtin_mul_overflow(a, b, &result);
}

/// a + b, or false if it overflows (result is then unspecified).
template <std::integral T> [[nodiscard]] constexpr bool checked_add(T a, T b, T& result) noexcept {
  return !__builtin_add_overflow(a, b, &result);
}

/// True if `count` bytes from `begin` on lie within `size` bytes. Cannot wrap.
[[nodiscard]] constexpr bool fits(std::uint64_t begin, std::uint64_t count,
                                  std::uint64_t size) noexcept {
  return begin <= size && count <= size - begin;
}

/// Product of the sizes and of element_size in bytes, or false if any partial product exceeds 2^63
/// - 1. A size of 0 hides no overflow of the others.
[[nodiscard]] constexpr bool checked_bytes(std::span<const std::int64_t> sizes,
                                           std::uint64_t element_size,
                                           std::uint64_t& bytes) noexcept {
  std::uint64_t product = element_size;
  bool zero = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) return false;
    zero = zero || size == 0;
    if (!checked_mul(product, static_cast<std::uint64_t>(size == 0 ? 1 : size), product) ||
        product > INT64_MAX)
      return false;
  }
  bytes = zero ? 0 : product;
  return true;
}

}  // namespace braid::io
