#pragma once
#include <braid/core/kernel_args/gemm.hpp>

#include "cpu/simd/kernels.hpp"

// How a matrix product is split: into a grid of tiles of C that depends only on the shape, never on
// the number of threads. k is never split. One thread computes a tile, with one of these methods,
// which also depends on the shape.
namespace braid::cpu::BRAID_ISA {

enum class GemmWay : std::uint8_t {
  direct,   // the inner loop reads A and B in place
  turned,   // B [n, k] is transposed first
  dot,      // dot products: A and B are contiguous along k, and m or n is small
  packed,   // blocks of A and B are copied (and widened) for the inner loop
  library,  // oneDNN
};

/// A part of one matrix of the batch: rows [i, i + m), columns [j, j + n).
struct GemmTile {
  std::int64_t matrix, i, j, m, n;
};

void gemm_tile_float32(const GemmArgs& args, GemmWay way, const GemmTile& tile);
void gemm_tile_float64(const GemmArgs& args, GemmWay way, const GemmTile& tile);
void gemm_tile_float16(const GemmArgs& args, GemmWay way, const GemmTile& tile);
void gemm_tile_bfloat16(const GemmArgs& args, GemmWay way, const GemmTile& tile);
void gemm_tile_int32(const GemmArgs& args, GemmWay way, const GemmTile& tile);
void gemm_tile_int64(const GemmArgs& args, GemmWay way, const GemmTile& tile);

}  // namespace braid::cpu::BRAID_ISA
