#pragma once
#include <braid/core/kernel_args/gemm.hpp>

// The choice of the kernel for a matrix product, and the table of tiles.
namespace braid::cuda {

/// The tile of C that a block computes.
enum class GemmTileKind : std::uint8_t {
  square128,
  tall128x64,
  square64,
  square32,
  columns128x16,
  rows16x128,
  tiny
};

struct GemmTileShape {
  GemmTileKind kind;
  int rows, columns, threads;
  double rate;     // of an SM full of its blocks, relative to the largest tile
  bool wide_only;  // only float32 has it
};

/// tiny is not in the table: one block per matrix, where each thread computes whole elements.
inline constexpr GemmTileShape kGemmTiles[] = {
    {GemmTileKind::square128, 128, 128, 256, 1.0, true},
    {GemmTileKind::tall128x64, 128, 64, 128, 0.95, true},
    {GemmTileKind::square64, 64, 64, 128, 0.8, false},
    {GemmTileKind::square32, 32, 32, 64, 0.5, false},
    {GemmTileKind::columns128x16, 128, 16, 128, 0.45, true},
    {GemmTileKind::rows16x128, 16, 128, 128, 0.45, true},
};

struct GemmPlan {
  GemmTileKind tile = GemmTileKind::square64;
  std::int64_t splits = 1, depth = 0;  // k in `splits` parts of `depth`; the last may be shorter
};

/// True if the product is so small that a launch costs more than the work.
[[nodiscard]] bool is_tiny(const GemmArgs& args) noexcept;

/// Chooses the tile whose blocks finish first on `processors` SMs. The tile does not change any
/// bit, because each element is one sum over a part of k, in order. The parts depend on the shape
/// alone, so the bits are the same on every device: k is split if 64×64 tiles of C would leave a
/// large GPU idle.
[[nodiscard]] GemmPlan plan_gemm(const GemmArgs& args, int processors) noexcept;

}  // namespace braid::cuda
