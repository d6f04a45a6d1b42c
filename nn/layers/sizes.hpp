#pragma once
#include <string>

#include <braid/core/error.hpp>
#include <braid/core/ops/conv.hpp>

// Prints sizes as PyTorch does.
namespace braid::nn {

inline std::string tuple(Size2 s) { return str('(', s.height, ", ", s.width, ')'); }
inline std::string tuple(std::int64_t n) { return str('(', n, ",)"); }
/// A single number if height and width are equal.
inline std::string short_tuple(Size2 s) { return s.height == s.width ? str(s.height) : tuple(s); }

}  // namespace braid::nn
