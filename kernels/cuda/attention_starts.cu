#include "cuda/attention_starts.hpp"

#include "cuda/device/group.cuh"
#include "cuda/errors.hpp"

// Makes the starts of sequences fit, so that no kernel of attention accesses a row outside of its
// operands, or a row of two sequences. A block for the queries and one for the keys.
namespace braid::cuda {

/// Rows [rows, heads, width] in which those of no sequence become 0. A number has `halves` units of
/// 16 bits, whatever its type is.
struct ClearedRows {
  AttentionOperand to;  // data may be null
  std::int64_t heads, width, halves;
};

/// The starts of queries, or of keys.
struct SideStarts {
  const std::int32_t* given;
  std::int32_t* fitted;
  std::int64_t rows, longest;
  ClearedRows cleared[2];
  void* lse;  // [heads, rows], may be null
  bool is_double;
};
struct BothStarts {
  SideStarts side[2];
  std::int64_t sequences;
};

/// The rows [first, end) between sequence i - 1 and sequence i, and those of sequence i - 1 that
/// are more than it may have.
struct RowsBetween {
  std::int64_t first, end;
};
BRAID_DEVICE RowsBetween rows_before(const SideStarts& of, std::int64_t sequences, std::int64_t i) {
  const std::int64_t end = i <= sequences ? of.fitted[i] : of.rows;
  if (i == 0) return {0, end};
  const std::int64_t start = of.fitted[i - 1];
  if (i > sequences) return {start, end};
  return {start + of.longest < end ? start + of.longest : end, end};
}

BRAID_DEVICE void clear_rows(const ClearedRows& rows, const RowsBetween& between) {
  if (rows.to.data == nullptr) return;
  const std::int64_t units = rows.width * rows.halves, of_row = rows.heads * units,
                     all = (between.end - between.first) * of_row;
  auto* const data = static_cast<std::uint16_t*>(rows.to.data);
  for (std::int64_t e = threadIdx.x; e < all; e += kThreads) {
    const std::int64_t row = between.first + e / of_row, h = e % of_row / units, unit = e % units;
    data[(row * rows.to.row + h * rows.to.head) * rows.halves + unit] = 0;
  }
}

BRAID_DEVICE void clear_lse(const SideStarts& of, std::int64_t heads, const RowsBetween& between) {
  const std::int64_t rows = between.end - between.first;
  for (std::int64_t e = threadIdx.x; e < rows * heads; e += kThreads) {
    const std::int64_t at = e / rows * of.rows + between.first + e % rows;
    if (of.is_double) static_cast<double*>(of.lse)[at] = lowest<double>();
    else static_cast<float*>(of.lse)[at] = lowest<float>();
  }
}

__global__ void __launch_bounds__(kThreads) attention_starts(BothStarts args) {
  SIMT_SHARED(std::int32_t, warps, [kWarps]);
  const SideStarts& of = args.side[blockIdx.x];
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const auto rows = static_cast<std::int32_t>(of.rows);
  const MaxOfNumbers<std::int32_t> later;
  std::int32_t before = 0;  // the largest start of the tiles before
  for (std::int64_t tile = 0; tile <= args.sequences; tile += kThreads) {
    const std::int64_t i = tile + threadIdx.x;
    std::int32_t start = i <= args.sequences ? of.given[i] : 0;
    if (start > rows) start = rows;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      const std::int32_t left = __shfl_up_sync(kFullWarp, start, apart);
      if (lane >= apart) start = later.join(start, left);
    }
    if (lane == 31) warps[warp] = start;
    __syncthreads();
    start = later.join(start, before);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) start = later.join(start, warps[w]);
      before = later.join(before, warps[w]);
    }
    if (i <= args.sequences) of.fitted[i] = start;
    __syncthreads();  // the next tile writes `warps` again, and all starts of this one are written
  }
  std::int32_t missed = 0;  // rows in no sequence
  for (std::int64_t i = threadIdx.x; i <= args.sequences + 1; i += kThreads) {
    const RowsBetween between = rows_before(of, args.sequences, i);
    if (between.first < between.end) missed = 1;
  }
  if (BlockGroup<std::int32_t>{warps}.join(later, missed) == 0) return;
  for (std::int64_t i = 0; i <= args.sequences + 1; ++i) {
    const RowsBetween between = rows_before(of, args.sequences, i);
    if (between.first >= between.end) continue;
    clear_rows(of.cleared[0], between);
    clear_rows(of.cleared[1], between);
    if (of.lse != nullptr) clear_lse(of, of.cleared[0].heads, between);
  }
}

namespace {

ClearedRows cleared(const AttentionOperand& to, const AttentionArgs& args, std::int64_t heads,
                    std::int64_t width) {
  return {to, heads, width, static_cast<std::int64_t>(size_of(args.dtype) / 2)};
}

/// Queues the kernel. The rows to clear are those of out, or of dq, and of dk and dv.
AttentionSequences fitted(const char* op, const AttentionArgs& args, void* starts,
                          const ClearedRows& of_queries, const ClearedRows& dk,
                          const ClearedRows& dv, void* lse, Stream& stream) {
  auto* const q = static_cast<std::int32_t*>(starts);
  std::int32_t* const k = q + args.batch + 1;
  const AttentionSequences& given = args.sequences;
  const bool is_double = args.dtype == DType::float64;
  const BothStarts both{
      {{given.q_starts, q, given.q_rows, args.queries, {of_queries, {}}, lse, is_double},
       {given.k_starts, k, given.k_rows, args.keys, {dk, dv}, nullptr, is_double}},
      args.batch};
  run(op, attention_starts, 2, kThreads, stream, both);
  return {q, k, given.q_rows, given.k_rows};
}

std::size_t bytes_of_starts(const AttentionArgs& args) {
  return static_cast<std::size_t>(args.batch + 1) * 2 * sizeof(std::int32_t);
}

}  // namespace

FittedSequences::FittedSequences(const AttentionArgs& args, Stream& stream)
    : starts_(bytes_of_starts(args), stream),
      fitted_(fitted("attention", args, starts_.data(),
                     cleared(args.out, args, args.heads, args.value_width), {}, {}, args.lse,
                     stream)) {}

FittedSequences::FittedSequences(const AttentionBackwardArgs& args, Stream& stream)
    : starts_(bytes_of_starts(args.forward), stream),
      fitted_(fitted("attention_backward", args.forward, starts_.data(),
                     cleared(args.dq, args.forward, args.forward.heads, args.forward.width),
                     cleared(args.dk, args.forward, args.forward.heads / args.forward.group,
                             args.forward.width),
                     cleared(args.dv, args.forward, args.forward.heads / args.forward.group,
                             args.forward.value_width),
                     nullptr, stream)) {}

}  // namespace braid::cuda
