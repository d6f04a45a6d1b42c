#pragma once
#include "cpu/simd/philox_blocks.hpp"

// The dropout factors of the elements of a tensor, computed from their indices.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kFactors = 512;  // maximum per call

template <class A> struct DropFactors {
  std::uint64_t seed, stream, threshold;
  A scale;

  /// Sets factor[i] for elements e + i, i < n <= kFactors: scale where the element's random word is
  /// at least the threshold, else 0.
  void operator()(A* factor, std::uint64_t e, std::int64_t n) const {
    constexpr int step = 4 * kFloatLanes;
    if (threshold > 0xffffffffu) {
      for (std::int64_t i = 0; i < n; ++i) factor[i] = A{};
      return;
    }
    const std::uint32_t least = static_cast<std::uint32_t>(threshold);
    if (n <= 2) {  // a row of one or two elements
      for (std::int64_t i = 0; i < n; ++i, ++e)
        factor[i] = philox(seed, stream, e / 4).w[e % 4] >= least ? scale : A{};
      return;
    }
    std::uint32_t word[kFactors + 4 + step];
    const std::int64_t skip = static_cast<std::int64_t>(e % 4);
    std::uint64_t block = e / 4;
    for (std::int64_t at = 0; at < skip + n; at += step, block += kFloatLanes)
      words_at(seed, stream, block, word + at);
    for (std::int64_t i = 0; i < n; ++i) factor[i] = word[skip + i] >= least ? scale : A{};
  }
};

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
