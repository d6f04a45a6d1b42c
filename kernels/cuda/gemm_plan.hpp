#pragma once
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/precision.hpp>

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
  mma128,
  mma64,
  tf32_128,
  tf32_64,
  tf32x3_128x64,
  tf32x3_64,
  tiny
};

/// The dtypes that have a tile: float32 alone; float32, float64 and integers; or, on tensor cores,
/// float16 and bfloat16, and float32 with the precision of that name.
enum class GemmTileUse : std::uint8_t { float32, wide, narrow, tf32, tf32x3 };
[[nodiscard]] constexpr bool has_tile(
    DType dtype, GemmTileUse use, Float32Precision precision = Float32Precision::exact) noexcept {
  switch (use) {
    case GemmTileUse::narrow: return size_of(dtype) == 2;
    case GemmTileUse::wide:
      if (dtype != DType::float32) return size_of(dtype) != 2;
      [[fallthrough]];
    case GemmTileUse::float32:
      return dtype == DType::float32 && precision == Float32Precision::exact;
    case GemmTileUse::tf32: return dtype == DType::float32 && precision == Float32Precision::tf32;
    case GemmTileUse::tf32x3:
      return dtype == DType::float32 && precision == Float32Precision::tf32x3;
  }
  return false;
}

struct GemmTileShape {
  GemmTileKind kind;
  int rows, columns, threads;
  double rate;  // of an SM full of its blocks, relative to the largest tile
  GemmTileUse use;
};

/// tiny is not in the table: one block per matrix, where each thread computes whole elements.
inline constexpr GemmTileShape kGemmTiles[] = {
    {GemmTileKind::square128, 128, 128, 128, 1.0, GemmTileUse::float32},
    {GemmTileKind::tall128x64, 128, 64, 128, 0.95, GemmTileUse::float32},
    {GemmTileKind::square64, 64, 64, 128, 0.8, GemmTileUse::wide},
    {GemmTileKind::square32, 32, 32, 64, 0.5, GemmTileUse::wide},
    {GemmTileKind::columns128x16, 128, 16, 128, 0.45, GemmTileUse::float32},
    {GemmTileKind::rows16x128, 16, 128, 128, 0.45, GemmTileUse::float32},
    {GemmTileKind::mma128, 128, 128, 128, 1.0, GemmTileUse::narrow},
    {GemmTileKind::mma64, 64, 64, 128, 0.6, GemmTileUse::narrow},
    {GemmTileKind::tf32_128, 128, 128, 128, 1.0, GemmTileUse::tf32},
    {GemmTileKind::tf32_64, 64, 64, 128, 0.6, GemmTileUse::tf32},
    {GemmTileKind::tf32x3_128x64, 128, 64, 128, 1.0, GemmTileUse::tf32x3},
    {GemmTileKind::tf32x3_64, 64, 64, 128, 0.8, GemmTileUse::tf32x3},
};

/// The precision of a product of float32 of depth k: with a small k, tf32x3 would be less exact
/// than float32, and the product is limited by memory.
[[nodiscard]] constexpr Float32Precision precision_for(std::int64_t k,
                                                       Float32Precision chosen) noexcept {
  return chosen == Float32Precision::tf32x3 && k < 32 ? Float32Precision::exact : chosen;
}

struct GemmPlan {
  GemmTileKind tile = GemmTileKind::square64;
  std::int64_t splits = 1, depth = 0;  // k in `splits` parts of `depth`; the last may be shorter
};

/// True if the product is so small that a launch costs more than the work.
[[nodiscard]] bool is_tiny(const GemmArgs& args) noexcept;

/// Chooses the tile whose blocks finish first on `processors` SMs. The tile does not change any
/// bit, because each element is one sum over a part of k, in order; only products on tensor cores
/// have other bits where they are tiny. The parts depend on the shape, the dtype and the precision
/// alone, so the bits are the same on every device. k is split if 64×64 tiles of C would leave a
/// large GPU idle, or if the tiles would occupy its SMs unevenly.
/// precision    of float32
[[nodiscard]] GemmPlan plan_gemm(const GemmArgs& args, int processors,
                                 Float32Precision precision = Float32Precision::exact) noexcept;

}  // namespace braid::cuda
