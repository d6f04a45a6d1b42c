#pragma once
#include "cuda/device/attention.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/device/mma_side.cuh"

// Tiles of attention on tensor cores (Dao 2023, FlashAttention-2, arXiv:2307.08691). A block of
// four warps has 64 rows of an operand, a warp 16 of them; it loops over tiles of the other
// operand's rows. Products are fragments of mma.sync. The scores of a tile are in the layout in
// which the next product reads its left operand, so they never leave their registers.
namespace braid::cuda {

inline constexpr float kLog2OfE = 1.44269504088896340736f, kLogOf2 = 0.693147180559945309417f;

/// Rows of an operand in shared memory, [rows, width]. By is their layout where a product sums over
/// the width, Across where it sums over the rows; the memory is the same.
template <class E, int Rows, int Width, bool Aligned> struct HeadTile {
  using T = typename E::T;
  using By = MmaSide<T, true, Rows, Width, 128, Aligned>;
  using Across = MmaSide<T, false, Width, Rows, 128, Aligned>;

  /// Copies the tiles of one head in turn. Heads narrower than Width are filled up with zeros.
  /// `packs`: the rows are aligned to 16 bytes.
  class Loader {
   public:
    /// Starts at row `first` of a head that has `rows`.
    BRAID_DEVICE Loader(const AttentionOperand& from, std::int64_t b, std::int64_t h,
                        std::int64_t first, std::int64_t rows)
        : left_(rows - first) {
      side_.start(static_cast<const T*>(from.data) + b * from.batch + h * from.head, from.row,
                  first, 0, rows);
    }
    BRAID_DEVICE void load(T* tile, const AttentionOperand& from, bool packs, std::int64_t width) {
      side_.load(tile, from.row, packs, static_cast<int>(width));
      left_ -= Rows;
      side_.next_lines(from.row, left_);
    }

   private:
    By side_;
    std::int64_t left_;
  };
};

/// sum += a fragment of 16 rows, times the 16 elements along k of `b` from 16 `step` on.
template <class E, class B, int N>
BRAID_DEVICE void add_fragments(float (&sum)[N][4], const std::uint32_t (&x)[4],
                                const typename E::T* b, int step) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    std::uint32_t y[4];
    B::read_b(y, b, n * 8, step, lane_of_thread());
    multiply_fragments(sum[n], x, {y[0], y[1]}, E{});
    multiply_fragments(sum[n + 1], x, {y[2], y[3]}, E{});
  }
}

/// sum = this warp's 16 rows of `a`, from `row` on, times the rows of `b`.
template <class E, class A, class B, int Columns>
BRAID_DEVICE void multiply_rows_mma(float (&sum)[Columns][4], const typename E::T* a, int row,
                                    const typename E::T* b, int width) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int n = 0; n < Columns; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) sum[n][c] = 0;
#pragma unroll
  for (int k = 0; k < width / 16; ++k) {
    std::uint32_t x[4];
    A::read_a(x, a, row, k, lane);
    add_fragments<E, B>(sum, x, b, k);
  }
}

/// sum += weights, rounded to E, times the rows of `b`: a row for each column of the weights.
template <class E, class B, int Columns, int N>
BRAID_DEVICE void add_weighted_mma(float (&sum)[N][4], const float (&weight)[Columns][4],
                                   const typename E::T* b) {
#pragma unroll
  for (int k = 0; k < Columns / 2; ++k) {
    std::uint32_t x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      x[i] =
          rounded_pair(weight[2 * k + i / 2][i % 2 * 2], weight[2 * k + i / 2][i % 2 * 2 + 1], E{});
    add_fragments<E, B>(sum, x, b, k);
  }
}

/// Writes this warp's 16 rows of results to rows `first` on of one head. They go through `line`, 16
/// rows of shared memory that only this warp uses, so that a lane writes 16 bytes.
template <class E, int Width, int N>
BRAID_DEVICE void store_head_rows(const AttentionOperand& to, std::int64_t b, std::int64_t h,
                                  std::int64_t first, std::int64_t rows, std::int64_t width,
                                  const float (&sum)[N][4], const float (&factor)[2],
                                  typename E::T* line) {
  using T = typename E::T;
  using Rows = MmaSide<T, true, 16, Width, 16 * Width / 8 < 128 ? 16 * Width / 8 : 128, true>;
  const int lane = lane_of_thread();
  __syncwarp();  // the operand that was here is not read any more
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t pair =
          rounded_pair(sum[n][2 * r] * factor[r], sum[n][2 * r + 1] * factor[r], E{});
      simt::store_vector(line + Rows::place(lane / 4 + 8 * r, n) + lane % 4 * 2, pair);
    }
  __syncwarp();
  T* const head = static_cast<T*>(to.data) + b * to.batch + h * to.head;
  constexpr int chunks = Width / 8;
  for (int e = lane; e < 16 * chunks; e += 32) {
    const int row = e / chunks, column = e % chunks * 8;
    if (first + row >= rows || column >= width) continue;
    const auto pack = load_pack<8>(line + Rows::place(row, e % chunks));
    T* const at = head + (first + row) * to.row + column;
    if (is_aligned<8>(at) && column + 8 <= width) {
      store_pack(at, pack);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (column + i < width) at[i] = pack.v[i];
    }
  }
}

/// Where an element of a warp's scores is: its row and column from the tile's first ones.
BRAID_DEVICE int row_of_element(int c) { return lane_of_thread() / 4 + c / 2 * 8; }
BRAID_DEVICE int column_of_element(int n, int c) {
  return n * 8 + lane_of_thread() % 4 * 2 + c % 2;
}

/// f over the four lanes that share a row.
template <class J> BRAID_DEVICE float join_quad(const J& joiner, float x) {
  x = joiner.join(x, __shfl_xor_sync(kFullWarp, x, 1));
  return joiner.join(x, __shfl_xor_sync(kFullWarp, x, 2));
}

/// True if the scale keeps the order of scores, and -inf: it is above 0 in float32 too.
BRAID_HOST_DEVICE bool keeps_order(const AttentionArgs& f) {
  return static_cast<float>(f.scale) > 0;
}

/// True if scores are products that are not scaled yet. Then a power's exponent is score * unit, in
/// one operation with the subtraction that follows.
template <bool simple> BRAID_DEVICE bool is_raw(const AttentionArgs& f) {
  return simple || (f.mask.data == nullptr && keeps_order(f));
}
/// What turns a score into an exponent of 2.
template <bool simple> BRAID_DEVICE float unit_of(const AttentionArgs& f) {
  return is_raw<simple>(f) ? static_cast<float>(f.scale) * kLog2OfE : kLog2OfE;
}

/// Finishes the products of a warp's 16 queries from `query` on and the keys from `key` on: -inf
/// where a query does not see a key or either does not exist. transposed: the keys are along the
/// rows.
template <bool simple, bool transposed, class E, class S, int Columns>
BRAID_DEVICE void finish_scores(const AttentionArgs& f, const S& s, std::int64_t b, std::int64_t h,
                                typename S::Index query, typename S::Index key,
                                float (&score)[Columns][4]) {
  using Index = typename S::Index;
  constexpr int queries = transposed ? Columns * 8 : 16, keys = transposed ? 16 : Columns * 8;
  if (!is_raw<simple>(f)) {
#pragma unroll
    for (int n = 0; n < Columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int row = row_of_element(c), column = column_of_element(n, c);
        score[n][c] = score_of<E>(f, s, b, h, query + (transposed ? column : row),
                                  key + (transposed ? row : column), score[n][c]);
      }
  } else if (query + queries > s.queries() || key + keys > s.keys() ||
             (f.causal && key + keys - 1 > query + s.past())) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // the columns [from, end) that the row sees or is seen by
      Index from = 0, end = 0;
      const Index at = (transposed ? key : query) + row_of_element(2 * r);
      if (transposed && at < s.keys())
        end = s.queries() - query, from = f.causal ? at - s.past() - query : 0;
      if (!transposed && at < s.queries()) end = keys_before(f, s, at + 1) - key;
      const int first = static_cast<int>(from > Columns * 8 ? Columns * 8 : from),
                last = static_cast<int>(end > Columns * 8 ? Columns * 8 : end);
#pragma unroll
      for (int n = 0; n < Columns; ++n)
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; ++c) {
          const int column = column_of_element(n, c);
          if (column < first || column >= last) score[n][c] = lowest<float>();
        }
    }
  }
}

/// Calls f.template operator()<Width, simple, varlen>() for the heads of `args`.
template <class F> void with_head(const AttentionArgs& args, bool simple, F&& f) {
  const auto with_kind = [&]<int Width, bool Simple>() {
    if (args.sequences.q_starts == nullptr) f.template operator()<Width, Simple, false>();
    else f.template operator()<Width, Simple, true>();
  };
  const auto with_width = [&]<int Width>() {
    if (simple) with_kind.template operator()<Width, true>();
    else with_kind.template operator()<Width, false>();
  };
  const std::int64_t width = args.width > args.value_width ? args.width : args.value_width;
  if (width <= 64) with_width.template operator()<64>();
  else if (width <= 128) with_width.template operator()<128>();
  else with_width.template operator()<256>();
}

/// True if every row of the operand begins at a multiple of 16 bytes.
template <class T> bool has_aligned_rows(const AttentionOperand& o, const AttentionArgs& f) {
  return is_aligned<8>(static_cast<const T*>(o.data)) && o.row % 8 == 0 &&
         (f.heads == 1 || o.head % 8 == 0) && (f.batch == 1 || o.batch % 8 == 0);
}

}  // namespace braid::cuda
