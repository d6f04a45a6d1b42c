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
// of the launch that adds the parts of k: nanoseconds, bytes in a nanosecond, and the most numbers
// in all parts (64 MiB of float32)
constexpr double kJoinLaunch = 3000, kJoinBytes = 3000, kMostInParts = 1 << 24;
constexpr double kWorthJoining = 0.9;   // of the time without it
constexpr double kBusyWarps = 8;        // enough to keep an SM's arithmetic busy, …
constexpr int kBusyElements = 64 * 32;  // … of a warp with 64 elements a thread; more count more

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Multiply-adds of an SM in a nanosecond, as measured in large products on an H200; of float64 and
/// integers, half of float32's.
double macs_per_ns(const GemmArgs& args, Float32Precision precision) {
  if (size_of(args.dtype) == 2) return 1140;
  if (args.dtype != DType::float32) return 85;
  return precision == Float32Precision::tf32 ? 480 : 170;
}

struct Choice {
  GemmTileKind tile = GemmTileKind::square64;
  double work = 0;  // multiply-adds of the SM that has most, for one of k
};

/// The tile whose blocks finish first.
Choice fastest_tile(const GemmArgs& args, std::int64_t splits, std::int64_t processors,
                    Float32Precision precision) {
  Choice best;
  for (const GemmTileShape& tile : kGemmTiles) {
    if (!has_tile(args.dtype, tile.use, precision)) continue;
    const std::int64_t blocks =
        ceil_div(args.m, tile.rows) * ceil_div(args.n, tile.columns) * args.batch * splits;
    const double each = static_cast<double>(ceil_div(blocks, processors)),
                 warps =
                     each * std::max(tile.threads / 32, tile.rows * tile.columns / kBusyElements);
    const double work = each * tile.rows * tile.columns / tile.rate /
                        (warps < kBusyWarps ? warps / kBusyWarps : 1.0);
    if (best.work == 0 || work < best.work) best = {tile.kind, work};
  }
  return best;
}

void split(GemmPlan& plan, const GemmArgs& args, std::int64_t splits) {
  plan.depth = ceil_div(ceil_div(args.k, splits), kDepthStep) * kDepthStep;
  plan.splits = ceil_div(args.k, plan.depth);
}

/// Splits the k of a product whose tiles fill a large GPU, but not evenly: of 144 tiles on 132 SMs,
/// 12 SMs have two, and the others wait for them. With parts there are more tiles and less to wait
/// for, and a launch that reads and adds them.
void split_for_balance(GemmPlan& plan, const GemmArgs& args, Float32Precision precision) {
  const double rate = macs_per_ns(args, precision),
               elements = static_cast<double>(args.m * args.n * args.batch);
  const auto nanoseconds = [&](const GemmPlan& p) {
    const double join = kJoinLaunch + elements * static_cast<double>(p.splits) * 8 / kJoinBytes;
    return fastest_tile(args, p.splits, kManyTiles, precision).work * static_cast<double>(p.depth) /
               rate +
           (p.splits > 1 ? join : 0);
  };
  double best = kWorthJoining * nanoseconds(plan);
  for (const std::int64_t splits : {2, 3, 4, 6, 8}) {
    GemmPlan parts = plan;
    split(parts, args, splits);
    if (parts.depth < kLeastDepth || elements * static_cast<double>(splits) > kMostInParts) break;
    const double time = nanoseconds(parts);
    if (time < best) best = time, plan = parts;
  }
}

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
  if (args.k >= 2 * kLeastDepth) {
    if (plain >= kManyTiles) {
      split_for_balance(plan, args, precision);
    } else {
      const std::int64_t splits =
          std::min({2 * kManyTiles / plain, args.k / kLeastDepth, kMostSplits});
      if (splits > 1) split(plan, args, splits);
    }
  }
  plan.tile = fastest_tile(args, plan.splits, processors, precision).tile;
  return plan;
}

}  // namespace braid::cuda
