#pragma once
#include <cstdint>

// Matrix products by oneDNN for large float32 matrices. Only gemm_onednn.cpp depends on the
// library.
namespace braid::cpu {

/// C [m, n] = (accumulate ? C : 0) + op(A) op(B) + bias, as in GemmArgs. Requires m, n, k > 0, and
/// not both bias and accumulate.
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

/// Returns true if this build has the library, it works on this machine, and it is switched on.
[[nodiscard]] bool library_gemm_available() noexcept;
/// For tests and benchmarks: with `false`, float32 uses Braid's own loops, as in a build without
/// the library. Returns the previous setting.
bool use_library_gemm(bool on) noexcept;
/// Computes on the calling thread alone. Returns false, with nothing done, once the process is
/// ending, because the library's code may already be freed. Throws InternalError if the library
/// fails.
[[nodiscard]] bool library_gemm(const LibraryProduct& product);

}  // namespace braid::cpu
