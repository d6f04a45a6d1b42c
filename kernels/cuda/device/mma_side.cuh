#pragma once
#include "cuda/device/element.cuh"

// Copies one operand of a product on tensor cores from global to shared memory, and reads it as
// fragments of mma.sync.
namespace braid::cuda {

/// A tile of op(A) or op(B)ᵀ in shared memory: kWidth rows of op(A), or columns of op(B), by kDepth
/// along k. It keeps the layout of global memory:
/// along_depth   [kWidth, kDepth]: the operand's memory is contiguous along k. ldmatrix reads it.
/// otherwise     [kDepth, kWidth]. ldmatrix.trans reads elements of 16 bits. It cannot transpose
///               those of 32, which are read one by one.
/// A line is cut in chunks, the 16 bytes that cp.async and ldmatrix move. The chunks of a line are
/// permuted by an XOR swizzle, so that the eight rows that ldmatrix reads at a time, or the 4 × 8
/// elements of a plain load, are in different banks.
/// Aligned       every chunk of global memory is aligned to 16 bytes. If not, `packs` tells it for
///               this operand. Where it is false, elements of 32 bits are copied one by one, and
///               chunks of others go through registers.
template <class T, bool along_depth, int kWidth, int kDepth, int kBlock, bool Aligned>
class MmaSide {
 public:
  static constexpr int kSize = kWidth * kDepth;
  static constexpr int kChunk = static_cast<int>(16 / sizeof(T));  // elements
  static constexpr int kDeep = 2 * kChunk;                         // of a fragment, along k

  /// The position in a tile of chunk `chunk` of line `line`.
  static BRAID_DEVICE int place(int line, int chunk) {
    return line * kLine + (chunk ^ turn(line)) * kChunk;
  }

  /// Starts at the tile at `wide` along the width and `deep` along the depth of an operand whose
  /// first element is p. `width` is the operand's size along the width.
  BRAID_DEVICE void start(const T* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          std::int64_t width) {
    start_width(wide, width);
    const int line = first_line(), column = first_chunk() * kChunk;
    at_ =
        p + (along_depth ? (wide + line) * ld + deep + column : (deep + line) * ld + wide + column);
  }

  /// Starts to copy the next tile, of which `depth` elements along k exist. Elements outside become
  /// 0, and are not read.
  BRAID_DEVICE void load(T* tile, std::int64_t ld, bool packs, int depth) {
    const int lines = lines_inside(depth), elements = elements_inside(depth);
    const T* from = at_;
#pragma unroll
    for (int e = 0; e < kEach; ++e, from += kLines * ld) {
      const int valid = e * kLines < lines ? elements : 0;
      T* const to = tile + place_of_chunk(e);
      if (Aligned || packs) {
        simt::cp_async16(to, from, static_cast<int>(sizeof(T)) * valid);  // to shared: async
      } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) simt::cp_async4(to + i, from + i, i < valid ? 4 : 0);
      } else {
        Pack<T, kChunk> pack;
#pragma unroll
        for (int i = 0; i < kChunk; ++i) pack.v[i] = i < valid ? from[i] : T(0.0f);
        store_pack(to, pack);
      }
    }
    at_ += along_depth ? kDepth : kDepth * ld;
  }

  /// After a load along the depth: the next kWidth lines at the first depth again; `left` of the
  /// operand's width are left.
  BRAID_DEVICE void next_lines(std::int64_t ld, std::int64_t left) {
    at_ += kWidth * ld - kDepth;
    width_ = left < kWidth ? static_cast<int>(left) : kWidth;
  }

  /// Reads 16 elements along the width, from `wide` on, by kDeep along k, from kDeep `step` on, as
  /// four matrices of 8 by a chunk c along k: those at (width 0, k 0), (8, 0), (0, c), (8, c), a
  /// fragment of A; or, as two fragments of B of 8 columns each, those at (0, 0), (0, c), (8, 0),
  /// (8, c). A fragment lies in neighbouring registers, as mma needs it.
  static BRAID_DEVICE void read_a(std::uint32_t (&x)[4], const T* tile, int wide, int step,
                                  int lane) {
    if constexpr (kPlain) read_plain(x, tile, wide, step, lane, 1, 2);
    else read(x, tile, wide, step, lane % 8, lane / 8 % 2, lane / 16);
  }
  static BRAID_DEVICE void read_b(std::uint32_t (&x)[4], const T* tile, int wide, int step,
                                  int lane) {
    if constexpr (kPlain) read_plain(x, tile, wide, step, lane, 2, 1);
    else read(x, tile, wide, step, lane % 8, lane / 16, lane / 8 % 2);
  }

  /// Element `wide`, `deep` of a tile.
  static BRAID_DEVICE const T& element(const T* tile, int wide, int deep) {
    return along_depth ? tile[place(wide, deep / kChunk) + deep % kChunk]
                       : tile[place(deep, wide / kChunk) + wide % kChunk];
  }

 protected:
  /// This lane names row `row` of the matrix that is 8 `right` along the width and a chunk `down`
  /// along k from `wide` and `step`. The swizzle of `right` and `down` is separate from that of
  /// `wide` and `step`, which are constants in most loops: what is left of them is an offset in the
  /// instruction.
  static BRAID_DEVICE void read(std::uint32_t (&x)[4], const T* tile, int wide, int step, int row,
                                int right, int down) {
    const int line = along_depth ? wide : step * kDeep,
              chunk = along_depth ? step * 2 : wide / kChunk,
              of_lane = row + 8 * (along_depth ? right : down),
              mask = turn(of_lane) ^ (along_depth ? down : right);
    const T* const at = tile + of_lane * kLine + ((chunk & kSwizzle) ^ mask) * kChunk +
                        line * kLine + (chunk & ~kSwizzle) * kChunk;
    if constexpr (along_depth) simt::ldmatrix_x4(x, at);
    else simt::ldmatrix_x4_trans(x, at);
  }

  /// Reads lane's element of each matrix: 8 along the width at the bit `right` of the matrix'
  /// number, a chunk along k at the bit `down`. The swizzle is separate, as above.
  static BRAID_DEVICE void read_plain(std::uint32_t (&x)[4], const T* tile, int wide, int step,
                                      int lane, int right, int down) {
    const int line = lane % 4, column = lane / 4, mask = turn(line) ^ column / kChunk;
    const T* const at = tile + line * kLine + column % kChunk + step * kDeep * kLine;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int chunk = wide / kChunk + ((i & right) != 0 ? 8 / kChunk : 0);
      x[i] =
          __float_as_uint(at[((chunk & kSwizzle) ^ mask) * kChunk + (chunk & ~kSwizzle) * kChunk +
                             ((i & down) != 0 ? kChunk * kLine : 0)]);  // from shared: plain
    }
  }

  static constexpr bool kPlain = sizeof(T) == 4 && !along_depth;
  static constexpr int kLine = along_depth ? kDepth : kWidth, kPerLine = kLine / kChunk;
  // The bits kSwizzle of a chunk's number change after every kSwizzled lines, which fill 128 bytes.
  // A plain load reads two chunks of each of four lines.
  static constexpr int kSwizzle = kPerLine < 8 ? kPerLine - 1 : 7,
                       kSwizzled = kPerLine < 8 ? 8 / kPerLine : 1;
  static_assert(!kPlain || kPerLine >= 8);
  static BRAID_DEVICE int turn(int line) {
    return (kPlain ? 2 * line : line / kSwizzled) & kSwizzle;
  }
  static constexpr int kLines = kBlock / kPerLine;  // lines between two chunks of a thread
  static constexpr int kEach = kSize / kChunk / kBlock;
  static_assert(kLine % kChunk == 0 && (kPerLine & (kPerLine - 1)) == 0 && kBlock % kPerLine == 0 &&
                kSize % (kChunk * kBlock) == 0);
  static BRAID_DEVICE int first_line() { return static_cast<int>(threadIdx.x) / kPerLine; }
  static BRAID_DEVICE int first_chunk() { return static_cast<int>(threadIdx.x) % kPerLine; }

  /// The position of this thread's chunk `e`. The swizzle repeats after eight lines.
  static BRAID_DEVICE int place_of_chunk(int e) {
    return kLines % 8 == 0 ? place(first_line(), first_chunk()) + e * kLines * kLine
                           : place(first_line() + e * kLines, first_chunk());
  }
  /// Sets how much of the tile's width exists.
  BRAID_DEVICE void start_width(std::int64_t wide, std::int64_t width) {
    width_ = width - wide < kWidth ? static_cast<int>(width - wide) : kWidth;
  }
  /// How many lines of the tile exist from this thread's first line on, where `depth` elements
  /// along k do; and how many of the elements of its chunk.
  BRAID_DEVICE int lines_inside(int depth) const {
    return (along_depth ? width_ : depth) - first_line();
  }
  BRAID_DEVICE int elements_inside(int depth) const {
    const int left = (along_depth ? depth : width_) - first_chunk() * kChunk;
    return left > kChunk ? kChunk : left > 0 ? left : 0;
  }

  int width_;

 private:
  const T* at_;
};

}  // namespace braid::cuda
