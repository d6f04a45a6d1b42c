#pragma once
#include <braid/core/kernel_args/image.hpp>

#include "cpu/runtime/parallel.hpp"
#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/elements.hpp"

// Loops over images, for pooling and resizing: in vectors along the channels where these are
// contiguous (channels last), else one element at a time.
namespace braid::cpu::BRAID_ISA {
namespace {

/// k lanes of E at a time.
template <class E> struct ChannelVector {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  // integers as wide as V, as comparisons of V return
  using I = Vec<std::conditional_t<sizeof(A) == 4, std::int32_t, std::int64_t>, E::kLanes>;
  static constexpr int kLanes = E::kLanes;
  static BRAID_INLINE V number(A x) { return splat<V>(x); }
  static BRAID_INLINE I index(std::int64_t i) { return splat<I>(static_cast<Lane<I>>(i)); }
  static BRAID_INLINE V load(const T* p, int k) {
    return k == kLanes ? E::load(p) : E::load_first(p, k);
  }
  static BRAID_INLINE void store(T* p, V v, int k) {
    if (k == kLanes) E::store(p, v);
    else E::store_first(p, v, k);
  }
  static BRAID_INLINE I load_index(const std::int32_t* p, int k) {
    using Stored = Vec<std::int32_t, kLanes>;
    return __builtin_convertvector(
        k == kLanes ? BRAID_ISA::load<Stored>(p) : BRAID_ISA::load_first<Stored>(p, k), I);
  }
  static BRAID_INLINE void store_index(std::int32_t* p, I i, int k) {
    using Stored = Vec<std::int32_t, kLanes>;
    const Stored v = __builtin_convertvector(i, Stored);
    if (k == kLanes) BRAID_ISA::store(p, v);
    else BRAID_ISA::store_first(p, v, k);
  }
};

/// One element at a time.
template <class E> struct ChannelNumber {
  using T = typename E::T;
  using A = Lane<typename E::V>;
  using V = A;
  using I = std::int64_t;
  static constexpr int kLanes = 1;
  static BRAID_INLINE V number(A x) { return x; }
  static BRAID_INLINE I index(std::int64_t i) { return i; }
  static BRAID_INLINE V load(const T* p, int) {
    if constexpr (sizeof(T) == 2) return E::to_float(*p);
    else return *p;
  }
  static BRAID_INLINE void store(T* p, V v, int) {
    if constexpr (sizeof(T) == 2) *p = E::from_float(v);
    else *p = v;
  }
  static BRAID_INLINE I load_index(const std::int32_t* p, int) { return *p; }
  static BRAID_INLINE void store_index(std::int32_t* p, I i, int) {
    *p = static_cast<std::int32_t>(i);
  }
};

/// Calls f.template operator()<P>() with the struct that the strides of the channels allow.
template <class E, class F>
BRAID_INLINE void with_channels(const ImageStrides& a, const ImageStrides& b, F&& f) {
  if (a.of[1] == 1 && b.of[1] == 1) f.template operator()<ChannelVector<E>>();
  else f.template operator()<ChannelNumber<E>>();
}

BRAID_INLINE std::int64_t place_of(const ImageStrides& s, std::int64_t n, std::int64_t h,
                                   std::int64_t w) {
  return n * s.of[0] + h * s.of[2] + w * s.of[3];
}

/// Calls row(n, h) for each row of n images of `height` rows with `numbers` elements, on all
/// threads.
template <class F>
BRAID_INLINE void for_image_rows(std::int64_t n, std::int64_t height, std::int64_t numbers,
                                 Stream& stream, F&& row) {
  constexpr std::int64_t kTileNumbers = 8 * 1024;
  const std::int64_t group =
                         numbers >= kTileNumbers ? 1 : kTileNumbers / (numbers < 1 ? 1 : numbers),
                     rows = n * height;
  const auto tile = [&](std::int64_t t) {
    for (std::int64_t r = t * group; r < rows && r < (t + 1) * group; ++r)
      row(r / height, r % height);
  };
  parallel_for(stream, (rows + group - 1) / group, tile);
}

/// Calls f(first channel, lanes) for all channels.
template <class P, class F> BRAID_INLINE void for_channels(std::int64_t c, F&& f) {
  std::int64_t first = 0;
  for (; first + P::kLanes <= c; first += P::kLanes) f(first, P::kLanes);
  if (first < c) f(first, static_cast<int>(c - first));
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
