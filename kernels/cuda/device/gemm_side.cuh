#pragma once
#include <type_traits>

#include "cuda/device/element.cuh"

// Copies one operand of a product from global to shared memory.
namespace braid::cuda {

/// A tile of op(A)ᵀ or op(B) in shared memory, [kDepth, kWidth]: the rows of op(A) or the columns
/// of op(B) are along the width. Copied through registers, where 16-bit operands are widened.
/// along_depth   the operand's memory is contiguous along k (A stored [m, k], B stored [n, k]); its
///               groups of four are transposed on the way. Row d of the tile stores element w at
///               w ^ turn(d), an XOR swizzle, so that neither the stores of a warp nor its reads
///               have bank conflicts.
template <class E, bool along_depth, int kWidth, int kDepth, int kBlock> class StagedSide {
  using T = typename E::T;
  using A = typename E::A;

 public:
  static constexpr int kSize = kWidth * kDepth;
  static constexpr bool kLinesAlongDepth = false;
  static BRAID_DEVICE constexpr int turn(int d) {
    return along_depth ? (d / 4 * (32 / (kDepth / 4))) & (kWidth - 1) : 0;
  }
  /// The index of an element in shared memory.
  static BRAID_DEVICE constexpr int place(int w, int d) { return d * kWidth + (w ^ turn(d)); }

  /// Starts at the tile at `wide` along the width and `deep` along the depth of an operand whose
  /// first element is p. packs: as load's.
  BRAID_DEVICE void start(const T* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          bool /* packs */) {
    const int row = first_row(), column = first_column();
    at_ = p + (along_depth ? (wide + row) * ld + deep + column : (deep + row) * ld + wide + column);
  }

  /// Loads the next tile, of which `depth` rows and `width` columns exist; elements outside become
  /// 0. store completes it.
  BRAID_DEVICE void load(A*, std::int64_t ld, bool packs, int width, int depth) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (kFours % kBlock != 0 && static_cast<int>(threadIdx.x) + e * kBlock >= kFours) break;
      const int row = first_row() + e * kRows, column = first_column();
      const int valid =
          along_depth ? (row < width ? depth - column : 0) : (row < depth ? width - column : 0);
      const T* const from = at_ + e * (kRows * ld);
      if (packs && valid >= 4) {
        const auto pack = load_pack<4>(from);  // from global: staged
#pragma unroll
        for (int i = 0; i < 4; ++i) next_[e][i] = E::load(pack.v[i]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) next_[e][i] = i < valid ? E::load(from[i]) : A{0};
      }
    }
    at_ += along_depth ? kDepth : kDepth * ld;
  }

  /// Stores to shared memory the elements that load left in registers.
  BRAID_DEVICE void store(A* shared) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (kFours % kBlock != 0 && static_cast<int>(threadIdx.x) + e * kBlock >= kFours) break;
      const int row = first_row() + e * kRows, column = first_column();
      if constexpr (along_depth) {
#pragma unroll
        // to shared: turned
        for (int i = 0; i < 4; ++i)
          shared[(column + i) * kWidth + (row ^ turn(column))] = next_[e][i];
      } else {
        Pack<A, 4> pack;
#pragma unroll
        for (int i = 0; i < 4; ++i) pack.v[i] = next_[e][i];
        store_pack(shared + row * kWidth + column, pack);
      }
    }
  }

 private:
  // groups of four in a row of the tile, in memory order
  static constexpr int kPerRow = (along_depth ? kDepth : kWidth) / 4;
  // rows between two groups of a thread
  static constexpr int kRows = kBlock / kPerRow;
  static constexpr int kFours = kSize / 4, kEach = (kFours + kBlock - 1) / kBlock;
  static_assert(kBlock % kPerRow == 0 && (kWidth & (kWidth - 1)) == 0);
  static BRAID_DEVICE int first_row() { return static_cast<int>(threadIdx.x) / kPerRow; }
  static BRAID_DEVICE int first_column() { return static_cast<int>(threadIdx.x) % kPerRow * 4; }

  const T* at_;
  A next_[kEach][4];
};

/// The same tile of float32, copied by cp.async without registers, so that several tiles can be on
/// their way. Its lines in shared memory are the operand's own: nothing is transposed.
/// along_depth   the lines are along k. After each four of them there is a gap of 16 bytes, so that
///               eight lanes that read 16 bytes of every fourth line have no bank conflicts.
template <bool along_depth, int kWidth, int kDepth, int kBlock> class CopiedSide {
 public:
  static constexpr bool kLinesAlongDepth = along_depth;
  static constexpr int kSize = kWidth * (along_depth ? kDepth + 1 : kDepth);
  static BRAID_DEVICE constexpr int turn(int) { return 0; }
  static BRAID_DEVICE constexpr int place(int w, int d) {
    return along_depth ? (w & ~3) * (kDepth + 1) + (w & 3) * kDepth + d : d * kWidth + w;
  }

  /// As StagedSide's.
  BRAID_DEVICE void start(const float* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          bool packs) {
    const int line = packs ? first_line<4>() : first_line<1>(),
              column = packs ? first_column<4>() : first_column<1>();
    at_ =
        p + (along_depth ? (wide + line) * ld + deep + column : (deep + line) * ld + wide + column);
  }

  /// Starts to copy the next tile to `shared`. As StagedSide's. A tile that exists as a whole is
  /// copied without comparisons.
  BRAID_DEVICE void load(float* shared, std::int64_t ld, bool packs, int width, int depth) {
    const int lines = along_depth ? width : depth, elements = along_depth ? depth : width;
    const bool whole = lines == kLines && elements == kLine;
    if (packs && whole) copy<4, true>(shared, ld, lines, elements);
    else if (packs) copy<4, false>(shared, ld, lines, elements);
    else if (whole) copy<1, true>(shared, ld, lines, elements);
    else copy<1, false>(shared, ld, lines, elements);
    at_ += along_depth ? kDepth : kDepth * ld;
  }
  BRAID_DEVICE void store(float*) const {}  // nothing is left in registers

 private:
  static constexpr int kLine = along_depth ? kDepth : kWidth,
                       kLines = along_depth ? kWidth : kDepth;
  // Threads copy N neighbours each, side by side in memory order.
  template <int N> static BRAID_DEVICE int first_line() {
    return static_cast<int>(threadIdx.x / (kLine / N));
  }
  template <int N> static BRAID_DEVICE int first_column() {
    return static_cast<int>(threadIdx.x % (kLine / N) * N);
  }

  template <int N, bool whole>
  BRAID_DEVICE void copy(float* shared, std::int64_t ld, int lines, int elements) const {
    constexpr int kDown = kBlock / (kLine / N);  // lines between two copies of a thread
    constexpr int kEach = kLines / kDown;
    static_assert(kDown * (kLine / N) == kBlock && kEach * kDown == kLines && kWidth % 4 == 0);
    const int line = first_line<N>(), column = first_column<N>(),
              first = along_depth ? place(line, column) : place(column, line);
    // in parts where there are many copies: their addresses would take registers of the sums
#pragma unroll(N == 4 ? kEach : 4)
    for (int e = 0; e < kEach; ++e) {
      const int down = e * kDown;
      const float* const from = at_ + down * ld;
      float* const to = shared + (along_depth && kDown % 4 != 0 ? place(line + down, column)
                                  : along_depth                 ? first + place(down, 0)
                                                                : first + place(0, down));
      const bool valid = whole || (line + down < lines && column < elements);
      if constexpr (N == 1) {
        simt::cp_async4(to, valid ? from : at_, valid ? 4 : 0);  // to shared: one by one
      } else {
        const int left = elements - column, bytes = left < 4 ? 4 * left : 16;
        // to shared: async
        simt::cp_async16(to, valid ? from : at_, whole ? 16 : valid ? bytes : 0);
      }
    }
  }

  const float* at_;
};

/// True if the tiles of a kind are copied by cp.async.
template <class E>
inline constexpr bool kCopied =
    std::is_same_v<typename E::T, float> && std::is_same_v<typename E::A, float>;

template <class E, bool along_depth, int kWidth, int kDepth, int kBlock>
using GemmSide = std::conditional_t<kCopied<E>, CopiedSide<along_depth, kWidth, kDepth, kBlock>,
                                    StagedSide<E, along_depth, kWidth, kDepth, kBlock>>;

}  // namespace braid::cuda
