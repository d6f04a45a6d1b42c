#pragma once
#include "cuda/device/epilogue.cuh"
#include "cuda/device/gemm_side.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/row_sum.cuh"
#include "cuda/device/run.cuh"

// C = epilogue(op(A) op(B) (+ bias, + C)). A block computes a tile of C, a thread several 4 x 4
// pieces of it. k advances in steps through stages of shared memory: while one step is multiplied,
// cp.async or registers load the next ones.
// Order   each element of C is one sum over its part of k, in order: the bits do not depend on m, n
//         or the tile.
namespace braid::cuda {

template <class E> struct GemmParams {
  using T = typename E::T;
  using A = typename E::A;
  const T* a;
  const T* b;
  T* c;
  const T* bias;
  T* sum_a;
  A* partial;       // [splits, batch, m, n], or nullptr: written to C directly
  A* partial_sums;  // [splits, m]
  std::int64_t m, n, k, batch, lda, ldb, ldc, batch_a, batch_b, batch_c, splits, depth, first;
  std::int64_t batch_bias = 0;
  int row_tiles, column_tiles;
  T* other = nullptr;
  Epilogue epilogue = Epilogue::none;
  // packs: rows may be read and written in groups of four; of operands of 16 bits, in eights.
  // packs_c: also those of `other`
  bool accumulate, packs_a, packs_b, packs_c, packs_partial;

  /// True for the epilogues that are more than a comparison.
  [[nodiscard]] BRAID_DEVICE bool has_epilogue() const { return epilogue > Epilogue::relu; }
  /// The element of `other` at the place of an element of C.
  [[nodiscard]] BRAID_DEVICE T* other_at(const T* element) const {
    return other == nullptr ? nullptr : other + (element - c);
  }
};

/// The layout of a block's threads. The lanes of a warp form kLaneRows × kLaneColumns, and warps
/// are adjacent. A thread has ThreadRows × ThreadColumns elements in groups of four. Its groups are
/// as far apart as the lanes of a warp are wide, so that the lanes read adjacent groups.
/// Of float32 there are Stages steps in shared memory, of other dtypes two.
template <int Rows, int Columns, int Depth, int ThreadRows, int ThreadColumns, int LaneRows,
          int MinBlocks, int Stages>
struct GemmTile {
  static constexpr int kRows = Rows, kColumns = Columns, kDepth = Depth, kThreadRows = ThreadRows,
                       kThreadColumns = ThreadColumns;
  static constexpr int kLaneRows = LaneRows, kLaneColumns = 32 / LaneRows, kMinBlocks = MinBlocks;
  template <class E> static constexpr int kStagesOf = kCopied<E> ? Stages : 2;
  static constexpr int kWarpRows = LaneRows * ThreadRows,
                       kWarpColumns = kLaneColumns * ThreadColumns;
  static constexpr int kWarpsAcross = Columns / kWarpColumns;
  static constexpr int kBlock = Rows / kWarpRows * kWarpsAcross * 32;
  static constexpr bool kAligned = false;    // it takes any operands
  static constexpr std::size_t kShared = 0;  // bytes of dynamic shared memory
  static_assert(Rows % kWarpRows == 0 && Columns % kWarpColumns == 0 && Depth % kRowGroup == 0 &&
                kBlock >= Rows);
};

/// Reads N numbers of a row of shared memory, in groups of four that are `apart` elements apart.
/// `turn` is the row's XOR swizzle. If a warp's part of the row covers all bits of the swizzle
/// (`whole`), the bits from `apart` on permute whole groups, and their offset is a compile-time
/// constant.
template <int N, int apart, class A>
BRAID_DEVICE void read_fours(A (&to)[N], const A* row, int at, int turn) {
  constexpr bool whole = N / 4 * apart >= 32;
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const int fours = i / 4 * apart;
    const int place =
        whole ? (at ^ (turn & (apart - 1))) + (fours ^ (turn & ~(apart - 1))) : (at + fours) ^ turn;
    const auto pack = load_pack<4>(row + place);  // from shared: fours
#pragma unroll
    for (int j = 0; j < 4; ++j) to[i + j] = pack.v[j];
  }
}

/// Reads four along the width and four along k of a tile in shared memory, to[width][k], by four
/// accesses in either layout. `from` is the first of them.
template <class Side, int kWidth, int kDepth, class A>
BRAID_DEVICE void read_block(A (&to)[4][4], const A* from) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto pack = load_pack<4>(from + i * (Side::kLinesAlongDepth ? kDepth : kWidth));
#pragma unroll
    for (int j = 0; j < 4; ++j) (Side::kLinesAlongDepth ? to[i][j] : to[j][i]) = pack.v[j];
  }
}

/// Where a thread's first elements are in the tiles of A and B: their row and column, or, if it
/// reads blocks, their indices in shared memory.
struct GemmPlaces {
  int a, b;
};
/// A side whose lines are along k is read four of k at a time, and then the other one too.
template <class SideA, class SideB>
inline constexpr bool kReadsBlocks = SideA::kLinesAlongDepth || SideB::kLinesAlongDepth;

/// Adds a step of k to a thread's sums, each in order of k. a and b are tiles in shared memory.
template <class Tile, class SideA, class SideB, class A>
BRAID_DEVICE void multiply_step(A (&sum)[Tile::kThreadRows][Tile::kThreadColumns], const A* a,
                                const A* b, GemmPlaces at) {
  constexpr int row_apart = Tile::kLaneRows * 4, column_apart = Tile::kLaneColumns * 4;
  if constexpr (!kReadsBlocks<SideA, SideB>) {
#pragma unroll
    for (int k = 0; k < Tile::kDepth; ++k) {
      A x[Tile::kThreadRows], y[Tile::kThreadColumns];
      read_fours<Tile::kThreadRows, row_apart>(x, a + k * Tile::kRows, at.a, SideA::turn(k));
      read_fours<Tile::kThreadColumns, column_apart>(y, b + k * Tile::kColumns, at.b,
                                                     SideB::turn(k));
#pragma unroll
      for (int i = 0; i < Tile::kThreadRows; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kThreadColumns; ++j) sum[i][j] += x[i] * y[j];
    }
  } else {
    a += at.a, b += at.b;
#pragma unroll
    for (int k = 0; k < Tile::kDepth; k += 4) {
      A y[Tile::kThreadColumns / 4][4][4];
#pragma unroll
      for (int j = 0; j < Tile::kThreadColumns / 4; ++j)
        read_block<SideB, Tile::kColumns, Tile::kDepth>(y[j],
                                                        b + SideB::place(j * column_apart, k));
#pragma unroll
      for (int i = 0; i < Tile::kThreadRows; i += 4) {
        A x[4][4];
        read_block<SideA, Tile::kRows, Tile::kDepth>(x, a + SideA::place(i / 4 * row_apart, k));
#pragma unroll
        for (int g = 0; g < 4; ++g)
#pragma unroll
          for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int j = 0; j < Tile::kThreadColumns; ++j)
              sum[i + r][j] += x[r][g] * y[j / 4][j % 4][g];
      }
    }
  }
}

/// Returns a sum with the bias or the old element added, not yet rounded.
template <class E>
BRAID_DEVICE typename E::A complete(const GemmParams<E>& p, typename E::A sum,
                                    const typename E::T* c, const typename E::T* bias) {
  if (p.accumulate) return sum + E::load(*c);
  return bias == nullptr ? sum : sum + E::load(*bias);
}

/// Finishes a sum: completes it, then applies relu. Rounds once.
template <class E>
BRAID_DEVICE typename E::T finish(const GemmParams<E>& p, typename E::A sum, const typename E::T* c,
                                  const typename E::T* bias) {
  using A = typename E::A;
  sum = complete<E>(p, sum, c, bias);
  if constexpr (E::kFloating) {
    if (p.epilogue == Epilogue::relu && sum <= A(0)) sum = A(0);  // a NaN stays
  } else {
    if (p.epilogue == Epilogue::relu && static_cast<std::make_signed_t<A>>(sum) < 0) sum = A(0);
  }
  return E::store(sum);
}

/// Stores four results of a row, of which `count` are in C, without has_epilogue().
template <class E>
BRAID_DEVICE void store_four(const GemmParams<E>& p, typename E::T* c, const typename E::A* sum,
                             const typename E::T* bias, std::int64_t count) {
  if (p.packs_c && count >= 4) {
    Pack<typename E::T, 4> four{};
    if (p.accumulate) four = load_pack<4>(c);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      four.v[i] = finish<E>(p, sum[i], four.v + i, bias == nullptr ? nullptr : bias + i);
    store_pack(c, four);  // to global: fours
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < count) c[i] = finish<E>(p, sum[i], c + i, bias == nullptr ? nullptr : bias + i);
  }
}

/// Finishes N neighbouring sums with any epilogue and stores them. pack: in one access; else the
/// first `count` one by one. The epilogue `add` rounds once.
template <int N, class E>
BRAID_DEVICE void finish_with_epilogue(const GemmParams<E>& p, typename E::T* c,
                                       const typename E::A* sum, const typename E::T* bias,
                                       bool pack, std::int64_t count) {
  typename E::T* const other = p.other_at(c);
  Pack<typename E::T, N> to{};
  if (p.epilogue == Epilogue::add) {
    load_some(to, other, pack, count);
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count)
        to.v[i] = E::store(complete<E>(p, sum[i], c + i, bias == nullptr ? nullptr : bias + i) +
                           E::load(to.v[i]));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count) to.v[i] = finish<E>(p, sum[i], c + i, bias == nullptr ? nullptr : bias + i);
    if (p.has_epilogue()) apply_epilogue<E>(p.epilogue, to.v, other, pack, count);
  }
  store_some(c, to, pack, count);
}

/// store_four with any epilogue.
template <class E>
BRAID_DEVICE void finish_four(const GemmParams<E>& p, typename E::T* c, const typename E::A* sum,
                              const typename E::T* bias, std::int64_t count) {
  if (p.has_epilogue()) finish_with_epilogue<4, E>(p, c, sum, bias, p.packs_c && count >= 4, count);
  else store_four<E>(p, c, sum, bias, count);
}

/// Applies the epilogue to four results that this thread has stored. They are not narrower than
/// their sums, which `add` would have to round once.
template <class E>
BRAID_DEVICE void finish_in_place(const GemmParams<E>& p, typename E::T* c, std::int64_t count) {
  static_assert(sizeof(typename E::T) == sizeof(typename E::A));
  const bool pack = p.packs_c && count >= 4;
  Pack<typename E::T, 4> four{};
  load_some(four, c, pack, count);
  apply_epilogue<E>(p.epilogue, four.v, p.other_at(c), pack, count);
  store_some(c, four, pack, count);
}

/// Stores four sums over a part of k.
template <class E>
BRAID_DEVICE void store_part(const GemmParams<E>& p, typename E::A* to, const typename E::A* sum,
                             std::int64_t count) {
  if (p.packs_partial) {
    Pack<typename E::A, 4> four;
#pragma unroll
    for (int q = 0; q < 4; ++q) four.v[q] = sum[q];
    store_pack(to, four);
  } else {
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (q < count) to[q] = sum[q];
  }
}

/// The part of the product that a block computes. Tiles are ordered in bands of eight tile rows,
/// column by column in a band, so that neighbouring blocks share operands in the L2 cache.
struct GemmItem {
  std::int64_t matrix;
  int split, row, column;
  [[nodiscard]] BRAID_DEVICE std::int64_t row_of(int rows) const {
    return static_cast<std::int64_t>(row) * rows;
  }
  [[nodiscard]] BRAID_DEVICE std::int64_t column_of(int columns) const {
    return static_cast<std::int64_t>(column) * columns;
  }
};
template <class E> BRAID_DEVICE GemmItem item_of(const GemmParams<E>& p) {
  constexpr int group = 8;
  const std::int64_t item = p.first + blockIdx.x,
                     tiles = static_cast<std::int64_t>(p.row_tiles) * p.column_tiles;
  const std::int64_t outer = item / tiles, tile = item - outer * tiles;
  const std::int64_t split = outer / p.batch,
                     band_size = static_cast<std::int64_t>(group) * p.column_tiles;
  const int band = static_cast<int>(tile / band_size),
            in_band = static_cast<int>(tile - band * band_size), left = p.row_tiles - band * group;
  const int rows = left < group ? left : group, column = in_band / rows;
  return {outer - split * p.batch, static_cast<int>(split), band * group + in_band - column * rows,
          column};
}

template <class E, class Tile, bool ta, bool tb>
BRAID_DEVICE void gemm_block(const GemmParams<E>& p) {
  using A = typename E::A;
  using SideA = GemmSide<E, !ta, Tile::kRows, Tile::kDepth, Tile::kBlock>;
  using SideB = GemmSide<E, tb, Tile::kColumns, Tile::kDepth, Tile::kBlock>;
  using Four = Pack<A, 4>;  // aligned to 16 bytes, as its accesses require
  constexpr int stages = Tile::template kStagesOf<E>;
  SIMT_SHARED(Four, shared_a, [stages][SideA::kSize / 4]);
  SIMT_SHARED(Four, shared_b, [stages][SideB::kSize / 4]);
  const auto buffer = [](Four* fours) { return reinterpret_cast<A*>(fours); };
  constexpr int row_apart = Tile::kLaneRows * 4, column_apart = Tile::kLaneColumns * 4;
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto row =
      static_cast<int>(warp / Tile::kWarpsAcross * Tile::kWarpRows + lane / Tile::kLaneColumns * 4);
  const auto column = static_cast<int>(warp % Tile::kWarpsAcross * Tile::kWarpColumns +
                                       lane % Tile::kLaneColumns * 4);
  SideA side_a;
  SideB side_b;
  // kept in shared memory, because registers are for sums
  SIMT_SHARED(GemmItem, kept, [1]);
  SIMT_SHARED(int, kept_last, [1]);
  SIMT_SHARED(int, kept_width, [2]);  // of this tile of A and of B
  constexpr int places = kReadsBlocks<SideA, SideB> ? Tile::kBlock : 1;
  SIMT_SHARED(int, kept_a, [places]);
  SIMT_SHARED(int, kept_b, [places]);
  if constexpr (kReadsBlocks<SideA, SideB>)
    kept_a[thread] = SideA::place(row, 0), kept_b[thread] = SideB::place(column, 0);
  const GemmItem first = item_of(p);
  const std::int64_t deep =
      p.k - first.split * p.depth < p.depth ? p.k - first.split * p.depth : p.depth;
  const int last = static_cast<int>(deep % Tile::kDepth == 0 ? Tile::kDepth : deep % Tile::kDepth);
  int left = static_cast<int>((deep + Tile::kDepth - 1) / Tile::kDepth);  // steps to multiply
  const auto width_of = [](std::int64_t all, std::int64_t from, int tile) {
    return all - from < tile ? static_cast<int>(all - from) : tile;
  };
  const int width_a = width_of(p.m, first.row_of(Tile::kRows), Tile::kRows),
            width_b = width_of(p.n, first.column_of(Tile::kColumns), Tile::kColumns);
  if (thread == 0)
    kept[0] = first, kept_last[0] = last, kept_width[0] = width_a, kept_width[1] = width_b;
  const bool sums = E::kFloating && p.sum_a != nullptr && first.column == 0 && thread < Tile::kRows;
  SIMT_SHARED(RowSum<A>, row_sums, [Tile::kRows]);
  if (sums) row_sums[thread] = RowSum<A>{};
  A sum[Tile::kThreadRows][Tile::kThreadColumns];
#pragma unroll
  for (int i = 0; i < Tile::kThreadRows; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kThreadColumns; ++j) sum[i][j] = A{0};
  const auto load = [&](int stage, int wide_a, int wide_b, int depth) {
    side_a.load(buffer(shared_a[stage]), p.lda, p.packs_a, wide_a, depth);
    side_b.load(buffer(shared_b[stage]), p.ldb, p.packs_b, wide_b, depth);
  };
  const auto store = [&](int stage) {
    side_a.store(buffer(shared_a[stage]));
    side_b.store(buffer(shared_b[stage]));
  };
  const auto commit = [] {  // a group for each step, also for those after the last
    if constexpr (kCopied<E>) simt::cp_async_commit();
  };
  const auto wait = [] {
    if constexpr (kCopied<E>) {
      simt::cp_async_wait<stages - 2>();
    }
  };
  side_a.start(p.a + first.matrix * p.batch_a, p.lda, first.row_of(Tile::kRows),
               first.split * p.depth, p.packs_a);
  side_b.start(p.b + first.matrix * p.batch_b, p.ldb, first.column_of(Tile::kColumns),
               first.split * p.depth, p.packs_b);
  // The step with which `left` steps remain has stage left % stages.
  const auto stage_of = [](int steps) {
    return static_cast<int>(static_cast<unsigned>(steps) % stages);
  };
#pragma unroll 1
  for (int step = 0; step < stages - 1; ++step) {
    if (step < left) {
      const int stage = stage_of(left - step);
      load(stage, width_a, width_b, step + 1 < left ? Tile::kDepth : last);
      store(stage);
    }
    commit();
  }
  wait();
  __syncthreads();
  for (; left > 0; --left) {
    const int now = stage_of(left), next = now + 1 == stages ? 0 : now + 1;
    GemmPlaces at{row, column};
    if constexpr (kReadsBlocks<SideA, SideB>) at = {kept_a[thread], kept_b[thread]};
    const A* const a = buffer(shared_a[now]);
    const A* const b = buffer(shared_b[now]);
    if (left >= stages)
      load(next, kept_width[0], kept_width[1], left > stages ? Tile::kDepth : kept_last[0]);
    commit();
    multiply_step<Tile, SideA, SideB>(sum, a, b, at);
    if constexpr (E::kFloating) {
      if (sums) {
        RowSum<A> row_sum = row_sums[thread];
        for (int k = 0; k < Tile::kDepth; k += kRowGroup)
          // from shared: row sums
          row_sum.add(
              tree_sum<kRowGroup, A>([&](int g) { return a[SideA::place(thread, k + g)]; }));
        row_sums[thread] = row_sum;
      }
    }
    if (left >= stages) store(next);
    wait();
    __syncthreads();  // the next step is there, and this one's stage is free
  }
  const GemmItem item = kept[0];
  const std::int64_t i0 = item.row_of(Tile::kRows), j0 = item.column_of(Tile::kColumns);
  if constexpr (E::kFloating) {
    if (sums && i0 + thread < p.m) {
      if (p.partial != nullptr)
        p.partial_sums[item.split * p.m + i0 + thread] = row_sums[thread].value();
      else p.sum_a[i0 + thread] = E::store(row_sums[thread].value());
    }
  }
  // The positions of a thread's elements are recomputed here: before, registers were for sums.
  const std::int64_t left_rows = p.m - i0 - row, left_columns = p.n - j0 - column;
  A* partial = nullptr;
  typename E::T* c = nullptr;
  std::int64_t ld = p.n;
  if (p.partial != nullptr)
    partial =
        p.partial + ((item.split * p.batch + item.matrix) * p.m + i0 + row) * ld + j0 + column;
  else ld = p.ldc, c = p.c + item.matrix * p.batch_c + (i0 + row) * ld + j0 + column;
  const typename E::T* const bias = p.bias == nullptr ? nullptr : p.bias + j0 + column;
#pragma unroll
  for (int i = 0; i < Tile::kThreadRows; ++i) {
    const int down = i / 4 * row_apart + i % 4;
    if (down >= left_rows) break;
#pragma unroll
    for (int j = 0; j < Tile::kThreadColumns; j += 4) {
      const int right = j / 4 * column_apart;
      if (right >= left_columns) break;
      const std::int64_t at = down * ld + right;
      if (partial != nullptr) store_part<E>(p, partial + at, sum[i] + j, left_columns - right);
      else
        store_four<E>(p, c + at, sum[i] + j, bias == nullptr ? nullptr : bias + right,
                      left_columns - right);
    }
  }
  if (partial != nullptr || !p.has_epilogue()) return;
  // In a loop that is not unrolled, over what this thread has just written: the sums, which are in
  // registers, would need a copy of the epilogue for each.
  constexpr int across = Tile::kThreadColumns / 4;
#pragma unroll 1
  for (int piece = 0; piece < Tile::kThreadRows * across; ++piece) {
    const int i = piece / across, down = i / 4 * row_apart + i % 4,
              right = piece % across * column_apart;
    if constexpr (E::kFloating) {
      if (down >= left_rows || right >= left_columns) continue;
      finish_in_place<E>(p, c + down * ld + right, left_columns - right);
    } else {  // computed again: ptxas spills the positions of integers
      const GemmItem again = kept[0];
      const std::int64_t at_row = again.row_of(Tile::kRows) + row + down,
                         at_column = again.column_of(Tile::kColumns) + column + right;
      if (at_row >= p.m || at_column >= p.n) continue;
      finish_in_place<E>(p, p.c + again.matrix * p.batch_c + at_row * p.ldc + at_column,
                         p.n - at_column);
    }
  }
}

//                           rows cols depth thread lanes blocks per SM, stages
using Square128 = GemmTile<128, 128, 8, 16, 8, 4, 2, 4>;
using Tall128x64 = GemmTile<128, 64, 8, 8, 8, 4, 3, 4>;
using Square64 = GemmTile<64, 64, 16, 8, 4, 4, 4, 3>;
using Square32 = GemmTile<32, 32, 32, 4, 4, 4, 8, 2>;
using Columns128x16 = GemmTile<128, 16, 32, 4, 4, 8, 3, 2>;
using Rows16x128 = GemmTile<16, 128, 32, 4, 4, 4, 4, 2>;

}  // namespace braid::cuda
