#pragma once
#include <braid/core/kernel_args/loop.hpp>

#include "cpu/simd/tree.hpp"

// Sources of reductions (see tree.hpp): they load elements as the lanes that a reduction computes
// with. Lanes are float (also for float16 and bfloat16), double, and 64-bit integers for all
// integers and bool.
namespace braid::cpu::BRAID_ISA {
namespace {

/// Contiguous elements of E.
template <class E> struct DenseSource {
  using V = typename E::V;
  const typename E::T* p;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const { return E::load(p + i); }
  BRAID_INLINE V first(std::int64_t i, int k) const { return E::load_first(p + i, k); }
};

/// Gathers elements [i, i + n), n <= 256, of operand 1 of a loop and converts them to lanes.
using Fetch = void (*)(void* lanes, const void* base, const Loop& loop, std::int64_t i,
                       std::int64_t n);

template <class E, class A>
void fetch_elements(void* lanes, const void* base, const Loop& loop, std::int64_t i,
                    std::int64_t n) {
  using T = typename E::T;
  constexpr int bytes = static_cast<int>(sizeof(T));
  const Position at = position_of(loop, i);
  if constexpr (std::is_same_v<T, A>) {
    gather(lanes, base, bytes, loop, 1, at, n);
  } else {
    A* to = static_cast<A*>(lanes);
    alignas(64) T raw[kBlockElements + kVectorBytes];
    gather(raw, base, bytes, loop, 1, at, n);
    if constexpr (kThroughFloat<E>) {
      // Converts whole vectors: the raw buffer is long enough, and lanes after the last element are
      // not used.
      for (std::int64_t j = 0; j < n; j += kFloatLanes) store(to + j, E::load(raw + j));
    } else {
      for (std::int64_t j = 0; j < n; ++j) to[j] = static_cast<A>(raw[j]);
    }
  }
}

/// Elements of any dtype in any layout.
template <class A> struct FetchedSource {
  using V = Vec<A, kVectorBytes / static_cast<int>(sizeof(A))>;
  const void* base;
  const Loop& loop;
  Fetch fetch;
  std::int64_t start = 0;
  alignas(64) A buffer[kBlockElements];
  FetchedSource(const void* p, const Loop& l, Fetch f) : base(p), loop(l), fetch(f) {}
  BRAID_INLINE void prepare(std::int64_t i, std::int64_t n) {
    start = i;
    fetch(buffer, base, loop, i, n);
  }
  BRAID_INLINE V at(std::int64_t i) const { return load<V>(buffer + (i - start)); }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    return load_first<V>(buffer + (i - start), k);
  }
};

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
