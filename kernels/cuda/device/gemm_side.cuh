#pragma once
#include <type_traits>

#include "cuda/device/element.cuh"

// Copies one operand of a product from global to shared memory.
namespace braid::cuda {

/// A tile of op(A)ᵀ or op(B) in shared memory, [kDepth, kWidth]: the rows of op(A) or the columns
/// of op(B) are along the width.
/// along_depth   the operand's memory is contiguous along k (A stored [m, k], B stored [n, k]); its
///               groups of four are transposed on the way. Row d of the tile stores element w at
///               w ^ turn(d), an XOR swizzle, so that neither the stores of a warp nor its reads
///               have bank conflicts.
/// Other float32 operands are copied with cp.async. All others go through registers, where 16-bit
/// ones are widened.
template <class E, bool along_depth, int kWidth, int kDepth, int kBlock> class GemmSide {
  using T = typename E::T;
  using A = typename E::A;

 public:
  static constexpr int kSize = kWidth * kDepth;
  static constexpr bool kAsync =
      !along_depth && std::is_same_v<T, float> && std::is_same_v<A, float>;
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

  /// Starts to load the next tile, of which `depth` rows exist; elements outside become 0.
  /// Asynchronous copies go to `shared`, others into registers.
  BRAID_DEVICE void load(A* shared, std::int64_t ld, bool packs, int depth) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (kFours % kBlock != 0 && static_cast<int>(threadIdx.x) + e * kBlock >= kFours) break;
      const int row = first_row() + e * kRows, column = first_column();
      const int valid =
          along_depth ? (row < width_ ? depth - column : 0) : (row < depth ? width_ - column : 0);
      const T* const from = at_ + e * (kRows * ld);
      if constexpr (kAsync) {
        A* const to = shared + row * kWidth + column;
        if (packs) {
          // to shared: async
          simt::cp_async16(to, valid > 0 ? from : at_, valid >= 4 ? 16 : valid > 0 ? 4 * valid : 0);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            simt::cp_async4(to + i, i < valid ? from + i : at_, i < valid ? 4 : 0);
        }
      } else if (packs && valid >= 4) {
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
    if constexpr (!kAsync) {
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
  A next_[kAsync ? 1 : kEach][4];
};

}  // namespace braid::cuda
