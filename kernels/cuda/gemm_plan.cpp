#include <algorithm>

#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/gemm_plan.hpp"

namespace braid::cuda {
namespace {

constexpr std::int64_t kTinyElements = 1024, kTinyDepth = 64, kTinyWork = 16384;
// in tiles of 64×64: the number of SMs of a large GPU
constexpr std::int64_t kManyTiles = 132;
// a part of k this long pays for its extra memory traffic
constexpr std::int64_t kLeastDepth = 256, kMostSplits = 32;
constexpr std::int64_t kDepthStep = 32;  // a multiple of every tile's depth
constexpr double kBusyWarps = 8;         // enough to keep an SM's arithmetic busy, …
constexpr int kBusyElements = 64 * 32;   // … of a warp with 64 elements a thread; more count more

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

bool is_tiny(const GemmArgs& args) noexcept {
  return args.m <= kTinyElements && args.n <= kTinyElements && args.m * args.n <= kTinyElements &&
         args.k <= kTinyDepth && args.m * args.n * args.k <= kTinyWork;
}

GemmPlan plan_gemm(const GemmArgs& args, int processors, Float32Precision precision) noexcept {
  precision = precision_for(args.k, precision);
  GemmPlan plan{GemmTileKind::square64, 1, args.k};
  if (is_tiny(args)) {
    plan.tile = GemmTileKind::tiny;
    return plan;
  }
  const std::int64_t plain = ceil_div(args.m, 64) * ceil_div(args.n, 64) * args.batch;
  if (plain < kManyTiles && args.k >= 2 * kLeastDepth) {
    std::int64_t splits = 2 * kManyTiles / plain;
    if (splits > args.k / kLeastDepth) splits = args.k / kLeastDepth;
    if (splits > kMostSplits) splits = kMostSplits;
    if (splits > 1) {
      plan.depth = ceil_div(ceil_div(args.k, splits), kDepthStep) * kDepthStep;
      plan.splits = ceil_div(args.k, plan.depth);
    }
  }
  double best = 0;
  for (const GemmTileShape& tile : kGemmTiles) {
    if (!has_tile(args.dtype, tile.use, precision)) continue;
    const std::int64_t blocks =
        ceil_div(args.m, tile.rows) * ceil_div(args.n, tile.columns) * args.batch * plan.splits;
    const double each = static_cast<double>(ceil_div(blocks, processors)),
                 warps =
                     each * std::max(tile.threads / 32, tile.rows * tile.columns / kBusyElements);
    const double time = each * tile.rows * tile.columns / tile.rate /
                        (warps < kBusyWarps ? warps / kBusyWarps : 1.0);
    if (best == 0 || time < best) best = time, plan.tile = tile.kind;
  }
  return plan;
}

}  // namespace braid::cuda
