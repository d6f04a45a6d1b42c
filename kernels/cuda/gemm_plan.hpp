#pragma once
#include <braid/core/kernel_args/gemm.hpp>

// Which kernels a matrix product takes: the one table of tiles, and the choice.
namespace braid::cuda {

/// One row a tile of C that a block computes.
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
  double rate;     // of an SM full of its blocks, against the largest tile's
  bool wide_only;  // float32 alone has it
};

/// tiny is none of them: one block a matrix, each thread whole elements.
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
  std::int64_t splits = 1, depth = 0;  // k in `splits` parts of `depth`, the last one shorter
};

/// So little work that a launch costs more.
[[nodiscard]] bool is_tiny(const GemmArgs& args) noexcept;

/// The tile is the one whose blocks `processors` SMs are through with first; it does not change a
/// bit, as each element is one sum over a part of k, in order. The parts depend on the shape alone,
/// so the bits are the same on every device: k is cut where 64×64 tiles of C would leave a large
/// GPU idle.
[[nodiscard]] GemmPlan plan_gemm(const GemmArgs& args, int processors) noexcept;

}  // namespace braid::cuda
