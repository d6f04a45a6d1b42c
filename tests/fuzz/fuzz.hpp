#pragma once
// Helpers that the fuzzers share.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

namespace braid::fuzz {

inline void require(bool ok) {
  if (!ok) std::abort();
}

inline std::span<const std::byte> bytes_of(const Tensor& t) {
  return {static_cast<const std::byte*>(t.impl()->data()),
          static_cast<std::size_t>(t.numel()) * size_of(t.dtype())};
}

/// Reads all bytes of the elements.
inline void touch(const Tensor& t) {
  volatile unsigned sum = 0;
  for (const std::byte b : bytes_of(t)) sum = sum + static_cast<unsigned>(b);
}

/// Runs f. It may throw a FormatError with a text of at most 2000 characters.
template <class F> void attempt(const F& f) {
  try {
    f();
  } catch (const FormatError& e) {
    require(std::strlen(e.what()) <= 2000);
  }
}

}  // namespace braid::fuzz
