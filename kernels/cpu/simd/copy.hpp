#pragma once
#include "cpu/simd/map.hpp"

// Shared by copies and fills: kernels that copy elements as bits.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class T> void same_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  if (in.step[0] == 1) {
    __builtin_memmove(out, in.p[0], static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));
  using V = Vec<T, lanes>;
  T* to = static_cast<T*>(out);
  const V value = load<V>(in.p[0]);
  for (; n >= lanes; n -= lanes, to += lanes) store(to, value);
  if (n > 0) store_first(to, value, static_cast<int>(n));
}

BRAID_INLINE MapKernel find_same_kernel(int bytes) {
  return bytes == 1   ? &same_kernel<std::uint8_t>
         : bytes == 2 ? &same_kernel<std::uint16_t>
         : bytes == 4 ? &same_kernel<std::uint32_t>
                      : &same_kernel<std::uint64_t>;
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
