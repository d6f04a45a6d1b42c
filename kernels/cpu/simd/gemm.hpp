#pragma once
#include <braid/core/kernel_args/gemm.hpp>

#include "cpu/simd/kernels.hpp"

// How a matrix product is cut: a grid of tiles of C that depends on the shape alone, never on the
// number of threads, and never cuts k. A tile is computed by one thread with one of these ways,
// chosen by the shape too.
namespace braid::cpu::BRAID_ISA {

enum class GemmWay : std::uint8_t {
  direct,   // the inner loop on A and B where they are
  turned,   // B [n, k] is transposed first
  dot,      // A and B are dense along k and few rows or columns are wanted
  packed,   // blocks of A and B are copied (and widened), then the inner loop
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
