#include "cuda/device/run.cuh"
#include "ladder/tensor/tile.cuh"

// Step 6: a large tile, and the products of the backward pass, dx = dy W and dW = dyᵀ x.
// Gains  A warp has 64 x 64 elements of C: 32 products for eight fragments, where it was eight for
//        four. Half the bytes of shared memory for each product, and of global memory too.
//        An operand that is not contiguous along k keeps the layout of global memory, and
//        ldmatrix.trans transposes the matrices on their way into registers.
// Costs  128 registers for sums; small products leave a GPU idle.
namespace braid::ladder {

namespace {
constexpr int kTile = 128, kBlock = 128, kDown = 4, kAcross = 8, kStages = 3;

/// The tile of an operand: [kTile, kDepth] if it is contiguous along k, otherwise [kDepth, kTile].
template <bool along> struct Side {
  static constexpr int kLine = (along ? kDepth : kTile) / kChunk, kLines = kBlock / kLine;

  static BRAID_DEVICE int place(int line, int chunk) {
    return line * kLine + (chunk ^ (along ? line / 2 % 4 : line % 8));
  }
  /// Starts to copy the tile at `wide` and p. width, k: the sizes of the operand.
  static BRAID_DEVICE void copy(Chunk* tile, const Half* from, int wide, int p, int width, int k,
                                bool aligned) {
    const int thread = static_cast<int>(threadIdx.x), chunk = thread % kLine;
#pragma unroll
    for (int line = thread / kLine, e = 0; e < kTile * kDepth / kChunk / kBlock;
         ++e, line += kLines) {
      const int w = wide + (along ? line : chunk * kChunk), d = p + (along ? chunk * kChunk : line);
      const int count = along ? (w < width ? inside(k - d) : 0) : (d < k ? inside(width - w) : 0);
      copy_chunk(tile[place(line, chunk)].v, from + (along ? w * k + d : d * width + w), count,
                 aligned);
    }
  }
  /// Reads four matrices: at `wide` and k = `deep`, then 8 further in the direction that the bits
  /// `right` and `down` of this lane's matrix say.
  static BRAID_DEVICE void read(std::uint32_t (&x)[4], const Chunk* tile, int wide, int deep,
                                int right, int down) {
    const int r = static_cast<int>(threadIdx.x) % 8;
    if constexpr (along)
      simt::ldmatrix_x4(x, tile + place(wide + right * 8 + r, deep / 8 + down));           // reads
    else simt::ldmatrix_x4_trans(x, tile + place(deep + down * 8 + r, wide / 8 + right));  // turns
  }
};
}  // namespace

template <bool along_a, bool along_b>
__global__ void __launch_bounds__(kBlock)
    tensor_backward_kernel(Product g, bool wide_a, bool wide_b, bool wide_c) {
  SIMT_SHARED(Chunk, tiles_a, [kStages][kTile * kDepth / kChunk]);
  SIMT_SHARED(Chunk, tiles_b, [kStages][kTile * kDepth / kChunk]);
  using A = Side<along_a>;
  using B = Side<along_b>;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int low = thread / 8 % 2, high = thread / 16 % 2;  // the number of this lane's matrix
  const int row = warp / 2 * 64, column = warp % 2 * 64;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  const auto copy = [&](int p, int stage) {
    if (p < g.k) {
      A::copy(tiles_a[stage], operand_a(g), i0, p, g.m, g.k, wide_a);
      B::copy(tiles_b[stage], operand_b(g), j0, p, g.n, g.k, wide_b);
    }
    simt::cp_async_commit();
  };
  float sum[kDown][kAcross][4] = {};
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage * kDepth, stage);
  for (int p = 0, now = 0; p < g.k; p += kDepth, now = (now + 1) % kStages) {
    simt::cp_async_wait<kStages - 2>();
    __syncthreads();  // this step's tiles are there, and those of the last step are free
    copy(p + (kStages - 1) * kDepth, (now + kStages - 1) % kStages);
#pragma unroll
    for (int deep = 0; deep < kDepth; deep += 16) {
      std::uint32_t a[kDown][4], b[kAcross / 2][4];
#pragma unroll
      for (int i = 0; i < kDown; ++i) A::read(a[i], tiles_a[now], row + i * 16, deep, low, high);
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j)
        B::read(b[j], tiles_b[now], column + j * 16, deep, high, low);
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          simt::mma_m16n8k16_bf16(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]},
                                  sum[i][j]);
    }
  }
  write_sums(g, i0 + row, j0 + column, sum, wide_c);
}

void tensor_backward(const Product& g, Stream& stream) {
  const bool along_a = g.use != Use::weight, along_b = g.use == Use::forward;
  const auto kernel = !along_a  ? tensor_backward_kernel<false, false>
                      : along_b ? tensor_backward_kernel<true, true>
                                : tensor_backward_kernel<true, false>;
  cuda::run("tensor", kernel, blocks_of(g, kTile), kBlock, stream, g,
            reads_chunks(g.a, along_a ? g.k : g.m), reads_chunks(g.b, along_b ? g.k : g.n),
            writes_pairs(g));
}

}  // namespace braid::ladder
