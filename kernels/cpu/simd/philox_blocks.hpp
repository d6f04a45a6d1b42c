#pragma once
#include <braid/core/philox.hpp>

#include "cpu/simd/elements.hpp"

// The functions of <braid/core/philox.hpp> on vectors, with a block in each lane.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The policy of philox.hpp for vectors.
struct VectorRandom {
  /// The high and low halves of the lanes' products with m.
  static BRAID_INLINE void multiply(VU x, std::uint32_t m, VU& high, VU& low) {
#if BRAID_VECTOR_BYTES == 64
    const __m512i factor = _mm512_set1_epi64(static_cast<long long>(m));
    const VUL even = (VUL)_mm512_mul_epu32((__m512i)x, factor),
              odd = (VUL)_mm512_mul_epu32((__m512i)((VUL)x >> 32), factor);
#elif BRAID_VECTOR_BYTES == 32
    const __m256i factor = _mm256_set1_epi64x(static_cast<long long>(m));
    const VUL even = (VUL)_mm256_mul_epu32((__m256i)x, factor),
              odd = (VUL)_mm256_mul_epu32((__m256i)((VUL)x >> 32), factor);
#elif defined(__SSE2__)
    const __m128i factor = _mm_set1_epi64x(static_cast<long long>(m));
    const VUL even = (VUL)_mm_mul_epu32((__m128i)x, factor),
              odd = (VUL)_mm_mul_epu32((__m128i)((VUL)x >> 32), factor);
#else
    const VUL even = ((VUL)x & 0xffffffffu) * m, odd = ((VUL)x >> 32) * m;
#endif
    high = (VU)((even >> 32) | (odd & 0xffffffff00000000u));
    low = (VU)((even & 0xffffffffu) | (odd << 32));
  }
  static BRAID_INLINE VF fma(VF a, VF b, VF c) { return fused_mul_add(a, b, c); }
  static BRAID_INLINE VD fma(VD a, VD b, VD c) { return fused_mul_add(a, b, c); }
  static BRAID_INLINE VF sqrt(VF x) { return BRAID_ISA::sqrt(x); }
  static BRAID_INLINE VD sqrt(VD x) { return BRAID_ISA::sqrt(x); }
  static BRAID_INLINE VD divide(VD a, VD b) { return a / b; }
  static BRAID_INLINE VF to_floating(VI x) { return __builtin_convertvector(x, VF); }
  /// Converts halves of 16 bits, which is exact, so that only their sum is rounded.
  static BRAID_INLINE VF to_floating(VU x) {
    return __builtin_convertvector((VI)(x >> 16), VF) * 65536.0f +
           __builtin_convertvector((VI)(x & 0xffffu), VF);
  }
  static BRAID_INLINE VD to_floating(VL x) { return __builtin_convertvector(x, VD); }
  static BRAID_INLINE VF from_bits(VU x) { return (VF)x; }
  static BRAID_INLINE VD from_bits(VUL x) { return (VD)x; }
  static BRAID_INLINE VU to_bits(VF x) { return (VU)x; }
  static BRAID_INLINE VUL to_bits(VD x) { return (VUL)x; }
  static BRAID_INLINE VI to_signed(VU x) { return (VI)x; }
  static BRAID_INLINE VL to_signed(VUL x) { return (VL)x; }
  template <class F, class T> static BRAID_INLINE F constant(T x) { return splat<F>(x); }
};

/// The words of one block in each lane.
struct Blocks {
  VU w[4];
};
/// Computes block `block + order(lane)` in each lane.
template <class F>
BRAID_INLINE Blocks blocks_in(std::uint64_t seed, std::uint64_t stream, std::uint64_t block,
                              F order) {
  Blocks b;
  std::uint32_t low[kFloatLanes], high[kFloatLanes];
  for (int i = 0; i < kFloatLanes; ++i) {
    low[i] = static_cast<std::uint32_t>(block + static_cast<unsigned>(order(i)));
    high[i] = static_cast<std::uint32_t>((block + static_cast<unsigned>(order(i))) >> 32);
  }
  b.w[0] = load<VU>(low);
  b.w[1] = load<VU>(high);
  b.w[2] = splat<VU>(static_cast<std::uint32_t>(stream));
  b.w[3] = splat<VU>(static_cast<std::uint32_t>(stream >> 32));
  detail::philox_rounds<VectorRandom>(b.w[0], b.w[1], b.w[2], b.w[3], seed);
  return b;
}
BRAID_INLINE Blocks blocks_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  return blocks_in(seed, stream, block, [](int lane) { return lane; });
}

/// Writes the words of blocks [block, block + kFloatLanes) in order.
BRAID_INLINE void words_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t block,
                           std::uint32_t* word) {
#if defined(__SSE2__)
  // The 4 x 4 words of each four lanes are transposed. The blocks are assigned to lanes so that
  // they are in order afterwards.
  constexpr int parts = kFloatLanes / 4;
  const Blocks b =
      blocks_in(seed, stream, block, [](int lane) { return lane % 4 * parts + lane / 4; });
#if BRAID_VECTOR_BYTES == 64
#define BRAID_UNPACK(which, bits, a, b) _mm512_unpack##which##_epi##bits((__m512i)(a), (__m512i)(b))
#elif BRAID_VECTOR_BYTES == 32
#define BRAID_UNPACK(which, bits, a, b) _mm256_unpack##which##_epi##bits((__m256i)(a), (__m256i)(b))
#else
#define BRAID_UNPACK(which, bits, a, b) _mm_unpack##which##_epi##bits((__m128i)(a), (__m128i)(b))
#endif
  const VU low01 = (VU)BRAID_UNPACK(lo, 32, b.w[0], b.w[1]),
           high01 = (VU)BRAID_UNPACK(hi, 32, b.w[0], b.w[1]);
  const VU low23 = (VU)BRAID_UNPACK(lo, 32, b.w[2], b.w[3]),
           high23 = (VU)BRAID_UNPACK(hi, 32, b.w[2], b.w[3]);
  store(word, (VU)BRAID_UNPACK(lo, 64, low01, low23));
  store(word + kFloatLanes, (VU)BRAID_UNPACK(hi, 64, low01, low23));
  store(word + 2 * kFloatLanes, (VU)BRAID_UNPACK(lo, 64, high01, high23));
  store(word + 3 * kFloatLanes, (VU)BRAID_UNPACK(hi, 64, high01, high23));
#undef BRAID_UNPACK
#else
  const Blocks b = blocks_at(seed, stream, block);
  for (int i = 0; i < kFloatLanes; ++i)
    for (int j = 0; j < 4; ++j) word[4 * i + j] = b.w[j][i];
#endif
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
