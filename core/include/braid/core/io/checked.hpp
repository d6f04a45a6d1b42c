#pragma once
#include <concepts>
#include <cstdint>
#include <span>

// Checked arithmetic on numbers that come from a file: the functions return false if the result
// does not fit. Every parser uses only these.
namespace braid::io {

/// result = a * b. Returns false on overflow (result is then unspecified).
template <std::integral T> [[nodiscard]] constexpr bool checked_mul(T a, T b, T& result) noexcept {
  return !__builtin_mul_overflow(a, b, &result);
}

/// result = a + b. Returns false on overflow (result is then unspecified).
template <std::integral T> [[nodiscard]] constexpr bool checked_add(T a, T b, T& result) noexcept {
  return !__builtin_add_overflow(a, b, &result);
}

/// True if the `count` bytes from `begin` on lie within `size` bytes. Cannot overflow.
[[nodiscard]] constexpr bool fits(std::uint64_t begin, std::uint64_t count,
                                  std::uint64_t size) noexcept {
  return begin <= size && count <= size - begin;
}

/// bytes = the product of the sizes and element_size. Returns false if a size is negative or a
/// partial product exceeds 2^63 - 1. A size of 0 does not hide an overflow of the others.
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
