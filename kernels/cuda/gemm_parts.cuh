#pragma once
#include "cuda/device/gemm_kernels.cuh"
#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

// gemm by dtype and tile. Each kernel has many instances, so they are compiled in parts, in
// parallel: a file for each of the lists of instances in sources.cmake.
namespace braid::cuda {

/// Integer products are computed modulo 2^bits, in unsigned types, whose overflow is defined.
using Int32 = Element<std::uint32_t, std::uint32_t, DType::int32>;
using Int64 = Element<std::uint64_t, std::uint64_t, DType::int64>;

// The tiles of float32, two for each part.
void gemm_float32_large(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                        Stream& stream);
void gemm_float32_square(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream);
void gemm_float32_skinny(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream);
void gemm_float32_tf32(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                       Stream& stream);
void gemm_float32_tf32x3(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream);

/// Queues a large or a small tile on tensor cores. One more, Any, computes products of which an
/// operand is not aligned to 16 bytes, or both are transposed.
template <class E, class Large, class Small, class Any>
void launch_mma(bool large, const GemmParams<E>& p, bool ta, bool tb, Stream& stream) {
  if (!p.packs_a || !p.packs_b || (ta && tb)) launch_tiles<E, Any>(p, ta, tb, stream);
  else if (large) launch_tiles<E, Large>(p, ta, tb, stream);
  else launch_tiles<E, Small>(p, ta, tb, stream);
}

/// Queues the tiles of a product as planned. For integers one tile is used for both tiles of the
/// plan, because compile time matters more than the last of the speed.
template <class E>
void launch_planned(const GemmParams<E>& p, [[maybe_unused]] GemmTileKind tile, bool ta, bool tb,
                    Stream& stream) {
  if constexpr (std::is_same_v<E, F32>) {
    switch (tile) {
      case GemmTileKind::square128:
      case GemmTileKind::tall128x64: return gemm_float32_large(tile, p, ta, tb, stream);
      case GemmTileKind::columns128x16:
      case GemmTileKind::rows16x128: return gemm_float32_skinny(tile, p, ta, tb, stream);
      case GemmTileKind::tf32_128:
      case GemmTileKind::tf32_64: return gemm_float32_tf32(tile, p, ta, tb, stream);
      case GemmTileKind::tf32x3_128x64:
      case GemmTileKind::tf32x3_64: return gemm_float32_tf32x3(tile, p, ta, tb, stream);
      default: return gemm_float32_square(tile, p, ta, tb, stream);
    }
  } else if constexpr (!E::kFloating) {
    launch_tiles<E, Square32>(p, ta, tb, stream);
  } else if constexpr (sizeof(typename E::T) == 2) {
    launch_mma<E, Mma128, Mma64, Mma64Any>(tile == GemmTileKind::mma128, p, ta, tb, stream);
  } else {
    if (tile == GemmTileKind::square32) launch_tiles<E, Square32>(p, ta, tb, stream);
    else launch_tiles<E, Square64>(p, ta, tb, stream);
  }
}

// The instances. gemm_kinds.hpp declares the functions.
#define BRAID_GEMM(name, E)                                                      \
  void gemm_##name(const GemmArgs& args, const GemmPlan& plan, Stream& stream) { \
    launch_gemm<E>(args, plan, stream, [&](const GemmParams<E>& p) {             \
      launch_planned<E>(p, plan.tile, args.ta, args.tb, stream);                 \
    });                                                                          \
  }
#define BRAID_LINEAR_BACKWARD(name, E)                                    \
  void linear_backward_##name(const GemmPairArgs& args, Stream& stream) { \
    launch_linear_backward<E>(args, stream);                              \
  }
#define BRAID_GEMM_TILES(name, first, First, Second)                                      \
  void gemm_float32_##name(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb, \
                           Stream& stream) {                                              \
    if (tile == GemmTileKind::first) launch_tiles<F32, First>(p, ta, tb, stream);         \
    else launch_tiles<F32, Second>(p, ta, tb, stream);                                    \
  }
#define BRAID_GEMM_TF32(name, large, Large, Small, Any)                                   \
  void gemm_float32_##name(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb, \
                           Stream& stream) {                                              \
    launch_mma<F32, Large, Small, Any>(tile == GemmTileKind::large, p, ta, tb, stream);   \
  }

}  // namespace braid::cuda
