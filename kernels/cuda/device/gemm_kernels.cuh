#pragma once
#include "cuda/device/gemm.cuh"
#include "cuda/device/gemm_mma.cuh"

// The kernels of the products that are computed in tiles, named after their use in a linear layer:
// y = x Wᵀ + b, dx = dy W, dW = dyᵀ x.
namespace braid::cuda {

template <class E, class Tile, bool ta, bool tb>
BRAID_DEVICE void gemm_tile(const GemmParams<E>& p) {
  if constexpr (requires { Tile::kStages; }) gemm_mma_block<E, Tile, ta, tb>(p);
  else gemm_block<E, Tile, ta, tb>(p);
}

/// Minimum of resident blocks per SM; lower where a sum takes two registers.
template <class E, class Tile>
inline constexpr int kBlocksHeld =
    sizeof(typename E::A) > 4 ? Tile::kMinBlocks * 5 / 8 : Tile::kMinBlocks;

/// y = x Wᵀ (+ b): A [m, k], B stored [n, k].
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, (kBlocksHeld<E, Tile>))
    linear_forward(GemmParams<E> p) {
  gemm_tile<E, Tile, false, true>(p);
}
/// dx = dy W: A [m, k], B [k, n].
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, (kBlocksHeld<E, Tile>))
    linear_backward_input(GemmParams<E> p) {
  gemm_tile<E, Tile, false, false>(p);
}
/// dW = dyᵀ x: A stored [k, m], B [k, n].
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, (kBlocksHeld<E, Tile>))
    linear_backward_weight(GemmParams<E> p) {
  gemm_tile<E, Tile, true, false>(p);
}
/// Both transposed. No layer needs it, so it has no minimum of blocks (0), except where nvcc would
/// choose 128 registers and spill.
template <class Tile>
inline constexpr int kBothHeld = [] {
  if constexpr (requires { Tile::kParts; }) return Tile::kParts > 1 ? 3 : 0;
  else return 0;
}();
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, kBothHeld<Tile>)
    matmul_both_transposed(GemmParams<E> p) {
  gemm_tile<E, Tile, true, true>(p);
}

/// Queues a kernel with a block for each tile of a product, in as many launches as it needs.
template <class Tile, class E, class... More>
void launch_items(const char* op, void (*kernel)(GemmParams<E>, More...), GemmParams<E> p,
                  Stream& stream, const More&... more) {
  p.row_tiles = static_cast<int>((p.m + Tile::kRows - 1) / Tile::kRows);
  p.column_tiles = static_cast<int>((p.n + Tile::kColumns - 1) / Tile::kColumns);
  // `most` is the largest grid
  const std::int64_t items = static_cast<std::int64_t>(p.row_tiles) * p.column_tiles * p.batch *
                             p.splits,
                     most = INT32_MAX;
  for (p.first = 0; p.first < items; p.first += most)
    run_with(Tile::kShared, op, kernel,
             static_cast<unsigned>(items - p.first < most ? items - p.first : most), Tile::kBlock,
             stream, p, more...);
}

/// Queues the tiles of a product. Each dtype and tile is instantiated in a separate file, so that
/// they compile in parallel.
template <class E, class Tile>
void launch_tiles(const GemmParams<E>& p, bool ta, bool tb, Stream& stream) {
  auto kernel = ta   ? linear_backward_weight<E, Tile>
                : tb ? linear_forward<E, Tile>
                     : linear_backward_input<E, Tile>;
  if constexpr (!Tile::kAligned)
    if (ta && tb) kernel = matmul_both_transposed<E, Tile>;
  launch_items<Tile>("matmul", kernel, p, stream);
}

}  // namespace braid::cuda
