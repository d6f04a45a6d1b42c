#pragma once
#include <cstdint>

// The library's matrix product (oneDNN) for large float32; gemm_onednn.cpp is the one file that
// knows it.
namespace braid::cpu {

/// C [m, n] = (accumulate ? C : 0) + op(A) op(B) + bias, as GemmArgs; m, n, k > 0, not both bias
/// and accumulate.
struct LibraryProduct {
  bool ta, tb, accumulate;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  const float* bias;
};

/// True if this build has the library, it works on this machine, and it was not switched off.
[[nodiscard]] bool library_gemm_available() noexcept;
/// For tests and benchmarks: `false` makes float32 take our own loops, as in a build without the
/// library. Returns what was set before.
bool use_library_gemm(bool on) noexcept;
/// Computes on the calling thread alone. False, with nothing done, once the process is ending: the
/// library's own code may be gone then. Throws InternalError if the library refuses.
[[nodiscard]] bool library_gemm(const LibraryProduct& product);

}  // namespace braid::cpu
