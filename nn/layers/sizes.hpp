#pragma once
#include <string>

#include <braid/core/error.hpp>
#include <braid/core/ops/conv.hpp>

// Sizes as PyTorch prints them.
namespace braid::nn {

inline std::string tuple(Size2 s) { return str('(', s.height, ", ", s.width, ')'); }
inline std::string tuple(std::int64_t n) { return str('(', n, ",)"); }
/// Throws ShapeError for more bytes than an address can count, before the sizes are multiplied.
inline void check_bytes(const char* layer, const char* what, const Shape& shape) {
  std::int64_t bytes = 8;  // of the widest type
  bool over = false, none = false;
  for (const std::int64_t size : shape) {
    none = none || size == 0;
    over = over || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (over && !none)
    throw ShapeError(str(layer, ": expected a ", what, " of less than 2^63 bytes, got ", shape));
}
/// One number where it was one.
inline std::string short_tuple(Size2 s) { return s.height == s.width ? str(s.height) : tuple(s); }

}  // namespace braid::nn
