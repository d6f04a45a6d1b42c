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
  static BRAID_DEVICE constexpr int turn(int d) {
    return along_depth ? (d / 4 * (32 / (kDepth / 4))) & (kWidth - 1) : 0;
  }

  /// Starts at the tile at `wide` along the width and `deep` along the depth of an operand whose
  /// first element is p. `width` is the operand's size along the width.
  BRAID_DEVICE void start(const T* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          std::int64_t width) {
    width_ = width - wide < kWidth ? static_cast<int>(width - wide) : kWidth;
    const int row = first_row(), column = first_column();
    at_ = p + (along_depth ? (wide + row) * ld + deep + column : (deep + row) * ld + wide + column);
  }

  /// Loads the next tile, of which `depth` rows exist; elements outside become 0. store completes
  /// it.
  BRAID_DEVICE void load(A*, std::int64_t ld, bool packs, int depth) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (kFours % kBlock != 0 && static_cast<int>(threadIdx.x) + e * kBlock >= kFours) break;
      const int row = first_row() + e * kRows, column = first_column();
      const int valid =
          along_depth ? (row < width_ ? depth - column : 0) : (row < depth ? width_ - column : 0);
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
  int width_;
  A next_[kEach][4];
};

/// The same tile of float32, copied by cp.async without registers, so that several tiles can be on
/// their way. An operand that is contiguous along k is copied element by element: a warp copies
/// eight of k in each of four lines, which are whole sectors of global memory, and turn(d) puts
/// them into 32 banks.
template <bool along_depth, int kWidth, int kDepth, int kBlock> class CopiedSide {
 public:
  static constexpr int kSize = kWidth * kDepth;
  static BRAID_DEVICE constexpr int turn(int d) {
    return along_depth ? (kWidth < 32 ? d * kWidth / 8 : d * 4) & (kAcross - 4) : 0;
  }

  /// As StagedSide's.
  BRAID_DEVICE void start(const float* p, std::int64_t ld, std::int64_t wide, std::int64_t deep,
                          std::int64_t width) {
    width_ = width - wide < kWidth ? static_cast<int>(width - wide) : kWidth;
    at_ = p + (along_depth ? (wide + first_row()) * ld + deep + first_column()
                           : (deep + first_row()) * ld + wide + first_column());
  }

  /// Starts to copy the next tile to `shared`. As StagedSide's. A tile that exists as a whole is
  /// copied without comparisons.
  BRAID_DEVICE void load(float* shared, std::int64_t ld, bool packs, int depth) {
    if (width_ == kWidth && depth == kDepth && (along_depth || packs)) copy<true>(shared, ld, 0, 0);
    else copy<false>(shared, ld, packs ? 4 : 1, depth);
    at_ += along_depth ? kDepth : kDepth * ld;
  }
  BRAID_DEVICE void store(float*) const {}  // nothing is left in registers

 private:
  static constexpr int kAcross = kWidth < 32 ? kWidth : 32;  // banks in which a row turns
  static constexpr int kWarps = kBlock / 32;
  // lines between two copies of a thread, and copies side by side
  static constexpr int kRows = along_depth ? 4 * kWarps : kBlock / (kWidth / 4);
  static constexpr int kBeside = along_depth ? kDepth / 8 : 1;
  static constexpr int kEach = (along_depth ? kSize : kSize / 4) / kBlock;
  static_assert(kEach * kBlock == (along_depth ? kSize : kSize / 4) && kDepth % 8 == 0 &&
                (kWidth & (kWidth - 1)) == 0 && kWidth >= 16);
  static BRAID_DEVICE int first_row() {
    const int thread = static_cast<int>(threadIdx.x);
    return along_depth ? thread / 8 : thread / (kWidth / 4);
  }
  static BRAID_DEVICE int first_column() {
    const int thread = static_cast<int>(threadIdx.x);
    return along_depth ? thread % 8 : thread % (kWidth / 4) * 4;
  }

  template <bool whole>
  BRAID_DEVICE void copy(float* shared, std::int64_t ld, int pack, int depth) const {
    const int row = first_row(), column = first_column();
    const int first = along_depth ? column * kWidth + (row ^ turn(column)) : row * kWidth + column;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int down = e / kBeside * kRows, right = e % kBeside * 8;
      const float* const from = at_ + (down * ld + right);
      if constexpr (along_depth) {
        // (row + down) ^ turn, because row < kRows; turn(column + 8) is turn(column)
        float* const to = shared + (first ^ (down & 31)) + (down & ~31) + right * kWidth;
        const bool valid = whole || (row + down < width_ && column + right < depth);
        simt::cp_async4(to, valid ? from : at_, valid ? 4 : 0);  // to shared: turned
      } else {
        float* const to = shared + first + down * kWidth;
        const int valid = whole ? 4 : row + down < depth ? width_ - column : 0;
        if (whole || pack == 4) {
          // to shared: async
          simt::cp_async16(to, valid > 0 ? from : at_, valid >= 4 ? 16 : valid > 0 ? 4 * valid : 0);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            simt::cp_async4(to + i, i < valid ? from + i : at_, i < valid ? 4 : 0);
        }
      }
    }
  }

  const float* at_;
  int width_;
};

/// True if the tiles of a kind are copied by cp.async.
template <class E>
inline constexpr bool kCopied =
    std::is_same_v<typename E::T, float> && std::is_same_v<typename E::A, float>;

template <class E, bool along_depth, int kWidth, int kDepth, int kBlock>
using GemmSide = std::conditional_t<kCopied<E>, CopiedSide<along_depth, kWidth, kDepth, kBlock>,
                                    StagedSide<E, along_depth, kWidth, kDepth, kBlock>>;

}  // namespace braid::cuda
