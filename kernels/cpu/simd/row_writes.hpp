#pragma once
#include "cpu/cache_size.hpp"
#include "cpu/simd/elements.hpp"

// Writes the rows of a result in whole vectors, and past the caches if the result is larger than
// they are.
namespace braid::cpu::BRAID_ISA {
namespace {

/// y[i] = f(i) for i in [0, n), one vector at a time; f(i, k) computes the last k lanes. `streamed`
/// means that y is aligned and too large for caching to help.
template <class E, class F>
BRAID_INLINE void write_row(typename E::T* y, std::int64_t n, bool streamed, F f) {
  constexpr int lanes = E::kLanes;
  std::int64_t i = 0;
  if (streamed && sizeof(typename E::T) * lanes == kVectorBytes) {
    for (; i + lanes <= n; i += lanes) stream_store(y + i, f(i, lanes));
  } else {
    for (; i + lanes <= n; i += lanes) E::store(y + i, f(i, lanes));
  }
  if (i < n) E::store_first(y + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
template <class E, class T> BRAID_INLINE typename E::V load_lanes(const T* p, int k) {
  return k == E::kLanes ? E::load(p) : E::load_first(p, k);
}

BRAID_INLINE bool worth_streaming(const void* out, std::int64_t rows, std::int64_t n,
                                  std::size_t bytes) {
  const std::size_t row = static_cast<std::size_t>(n) * bytes;
  if (row < 1024 || row % 64 != 0 || reinterpret_cast<std::uintptr_t>(out) % 64 != 0) return false;
  return static_cast<std::size_t>(rows) * row > last_level_cache_bytes();
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
