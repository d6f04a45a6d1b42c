#include <braid/core/kernel_args/gemm.hpp>

#include "cpu/simd/gemm.hpp"

// Integer products: plain loops that the compiler vectorises. They are computed in unsigned types,
// so that overflow wraps modulo 2^bits and is not undefined.
namespace braid::cpu::BRAID_ISA {

namespace {

template <class T> void integer_tile(const GemmArgs& args, const GemmTile& tile) {
  const T* const a = static_cast<const T*>(args.a) + tile.matrix * args.batch_a;
  const T* const b = static_cast<const T*>(args.b) + tile.matrix * args.batch_b;
  const T* const bias = static_cast<const T*>(args.bias);
  for (std::int64_t i = tile.i; i < tile.i + tile.m; ++i) {
    T* const c = static_cast<T*>(args.c) + tile.matrix * args.batch_c + i * args.ldc;
    if (args.tb) {
      for (std::int64_t j = tile.j; j < tile.j + tile.n; ++j) {
        T sum = 0;
        for (std::int64_t p = 0; p < args.k; ++p)
          sum += a[args.ta ? p * args.lda + i : i * args.lda + p] * b[j * args.ldb + p];
        c[j] = sum + (args.accumulate ? c[j] : bias ? bias[j] : 0);
      }
      continue;
    }
    if (!args.accumulate)
      for (std::int64_t j = tile.j; j < tile.j + tile.n; ++j) c[j] = bias ? bias[j] : 0;
    for (std::int64_t p = 0; p < args.k; ++p) {
      const T factor = a[args.ta ? p * args.lda + i : i * args.lda + p];
      const T* const row = b + p * args.ldb;
      for (std::int64_t j = tile.j; j < tile.j + tile.n; ++j) c[j] += factor * row[j];
    }
  }
}

}  // namespace

void gemm_tile_int32(const GemmArgs& args, GemmWay, const GemmTile& tile) {
  integer_tile<std::uint32_t>(args, tile);
}
void gemm_tile_int64(const GemmArgs& args, GemmWay, const GemmTile& tile) {
  integer_tile<std::uint64_t>(args, tile);
}

}  // namespace braid::cpu::BRAID_ISA
