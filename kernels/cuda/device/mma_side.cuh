#pragma once
#include "cuda/device/element.cuh"

// Copies one 16-bit operand of a product from global to shared memory, and reads it as fragments of
// mma.sync.
namespace braid::cuda {

/// A tile of op(A) or op(B)ᵀ in shared memory: kWidth rows of op(A), or columns of op(B), by kDepth
/// along k. It keeps the layout of global memory:
/// along_depth   [kWidth, kDepth]: the operand's memory is contiguous along k. ldmatrix reads it.
/// otherwise     [kDepth, kWidth]. ldmatrix.trans reads it.
/// A line is cut in chunks of 8 elements, the 16 bytes that cp.async and ldmatrix move. The chunks
/// of a line are permuted by an XOR swizzle, so that the eight rows that ldmatrix reads at a time
/// are in different banks.
/// Aligned       every chunk of global memory is aligned to 16 bytes. If not, `packs` tells it for
///               this operand, and its chunks go through registers where it is false.
template <class T, bool along_depth, int kWidth, int kDepth, int kBlock, bool Aligned>
class MmaSide {
 public:
  static constexpr int kSize = kWidth * kDepth;

  /// The position in a tile of chunk `chunk` of line `line`.
  static BRAID_DEVICE int place(int line, int chunk) {
    constexpr int lines = kPerLine >= 8 ? 1 : 8 / kPerLine;  // of the tile in 128 bytes
    return line * kLine + (chunk ^ (line / lines & (kPerLine < 8 ? kPerLine - 1 : 7))) * 8;
  }

  /// Starts at the tile at `wide` along the width and `deep` along the depth of an operand whose
  /// first element is p. `width` is the operand's size along the width.
  BRAID_DEVICE void start(const T* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          std::int64_t width) {
    width_ = width - wide < kWidth ? static_cast<int>(width - wide) : kWidth;
    const int line = first_line(), column = first_chunk() * 8;
    at_ =
        p + (along_depth ? (wide + line) * ld + deep + column : (deep + line) * ld + wide + column);
  }

  /// Starts to copy the next tile, of which `depth` elements along k exist. Elements outside become
  /// 0.
  BRAID_DEVICE void load(T* tile, std::int64_t ld, bool packs, int depth) {
    const int first = first_line(), chunk = first_chunk(), column = chunk * 8;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int line = first + e * kLines;
      const int valid =
          along_depth ? (line < width_ ? depth - column : 0) : (line < depth ? width_ - column : 0);
      const T* const from = at_ + e * (kLines * ld);
      T* const to = tile + place(line, chunk);
      if (Aligned || packs) {
        // to shared: async
        simt::cp_async16(to, valid > 0 ? from : at_, valid >= 8 ? 16 : valid > 0 ? 2 * valid : 0);
      } else {
        Pack<T, 8> pack;
#pragma unroll
        for (int i = 0; i < 8; ++i) pack.v[i] = i < valid ? from[i] : T(0.0f);
        store_pack(to, pack);
      }
    }
    at_ += along_depth ? kDepth : kDepth * ld;
  }

  /// Reads 16 elements along the width, from `wide` on, by 16 along k, from 16 `step` on. x has the
  /// four 8 × 8 matrices of a fragment of A, at (width 0, k 0), (8, 0), (0, 8), (8, 8). A fragment
  /// of B, which has 8 columns, is x[0] and x[2], or x[1] and x[3].
  static BRAID_DEVICE void read(std::uint32_t (&x)[4], const T* tile, int wide, int step,
                                int lane) {
    const T* const row =
        tile + (along_depth ? place(wide + lane % 16, step * 2 + lane / 16)
                            : place(step * 16 + lane % 8 + lane / 16 * 8, wide / 8 + lane / 8 % 2));
    if constexpr (along_depth) simt::ldmatrix_x4(x, row);
    else simt::ldmatrix_x4_trans(x, row);
  }

  /// Element `wide`, `deep` of a tile.
  static BRAID_DEVICE const T& element(const T* tile, int wide, int deep) {
    return along_depth ? tile[place(wide, deep / 8) + deep % 8]
                       : tile[place(deep, wide / 8) + wide % 8];
  }

 private:
  static constexpr int kLine = along_depth ? kDepth : kWidth, kPerLine = kLine / 8;
  static constexpr int kLines = kBlock / kPerLine;  // lines between two chunks of a thread
  static constexpr int kEach = kSize / 8 / kBlock;
  static_assert(kLine % 8 == 0 && (kPerLine & (kPerLine - 1)) == 0 && kBlock % kPerLine == 0 &&
                kSize % (8 * kBlock) == 0);
  static BRAID_DEVICE int first_line() { return static_cast<int>(threadIdx.x) / kPerLine; }
  static BRAID_DEVICE int first_chunk() { return static_cast<int>(threadIdx.x) % kPerLine; }

  const T* at_;
  int width_;
};

}  // namespace braid::cuda
