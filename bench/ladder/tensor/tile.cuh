#pragma once
#include "cuda/device/element.cuh"
#include "ladder/problems.hpp"

// What the steps on tensor cores share: the edges of matrices, and C.
namespace braid::ladder {

using Half = cuda::BF16::T;                    // bfloat16
using Chunk = cuda::Pack<Half, 8>;             // 16 bytes
inline constexpr int kChunk = 8, kDepth = 32;  // elements; k advances by kDepth

BRAID_DEVICE const Half* operand_a(const Product& g) { return static_cast<const Half*>(g.a); }
BRAID_DEVICE const Half* operand_b(const Product& g) { return static_cast<const Half*>(g.b); }

/// How many elements of a chunk exist, where `left` do from its first on.
BRAID_DEVICE int inside(int left) { return left < 0 ? 0 : left < kChunk ? left : kChunk; }

/// Reads the first `count` elements of a chunk; the others are 0. wide: p is aligned to 16 bytes.
BRAID_DEVICE Chunk read_chunk(const Half* p, int count, bool wide) {
  if (wide && count == kChunk) return simt::load_vector<Chunk>(p);  // fetches
  Chunk chunk;
#pragma unroll
  for (int i = 0; i < kChunk; ++i) chunk.v[i] = i < count ? p[i] : Half(0.0f);
  return chunk;
}

/// Starts to copy a chunk to shared memory. One that is not aligned goes through registers.
BRAID_DEVICE void copy_chunk(Half* to, const Half* p, int count, bool wide) {
  if (wide) simt::cp_async16(to, p, 2 * count);  // copies
  else simt::store_vector(to, read_chunk(p, count, false));
}

/// Writes the sums of a warp, 16 x 8 times kDown x kAcross, from row i and column j of C on. Lane l
/// has two neighbours in row l / 4, and two eight rows below.
template <int kDown, int kAcross>
BRAID_DEVICE void write_sums(const Product& g, int i, int j, const float (&sum)[kDown][kAcross][4],
                             bool wide) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  i += lane / 4, j += lane % 4 * 2;
#pragma unroll
  for (int y = 0; y < kDown * 2; ++y)
#pragma unroll
    for (int x = 0; x < kAcross; ++x) {
      const int row = i + y * 8, column = j + x * 8;
      if (row >= g.m || column >= g.n) continue;
      Half* const c = static_cast<Half*>(g.c) + row * g.n + column;
      const cuda::Pack<Half, 2> pair{
          {Half(sum[y / 2][x][y % 2 * 2]), Half(sum[y / 2][x][y % 2 * 2 + 1])}};
      if (wide) {
        cuda::store_pack(c, pair);
      } else {
        c[0] = pair.v[0];
        if (column + 1 < g.n) c[1] = pair.v[1];
      }
    }
}

/// Blocks of tile x tile elements of C.
inline dim3 blocks_of(const Product& g, int tile) {
  return dim3(static_cast<unsigned>((g.n + tile - 1) / tile),
              static_cast<unsigned>((g.m + tile - 1) / tile));
}
/// Whether the rows of a matrix of this width are made of aligned chunks.
inline bool reads_chunks(const void* p, int width) {
  return width % kChunk == 0 && cuda::is_aligned<kChunk>(static_cast<const Half*>(p));
}
/// Whether the rows of C are made of aligned pairs.
inline bool writes_pairs(const Product& g) {
  return g.n % 2 == 0 && cuda::is_aligned<2>(static_cast<const Half*>(g.c));
}

}  // namespace braid::ladder
