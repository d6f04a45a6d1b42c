#include "ddp/wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "scale/model.hpp"
#include "support/json.hpp"
#include "support/timing.hpp"

namespace bench::ddp {
namespace {

using braid::Tensor;
namespace parallel = braid::parallel;
using Clock = std::chrono::steady_clock;

constexpr int kLayers = 12, kSteps = 7, kWarm = 3;
constexpr std::int64_t kWidth = 1024, kRows = 1024, kFew = 8;
constexpr std::size_t kBucket = std::size_t{4} << 20;

struct Net : braid::nn::Module {
  std::vector<braid::nn::Linear> layers;
  Net() {
    for (int i = 0; i < kLayers; ++i)
      layers.emplace_back(kWidth, kWidth, braid::nn::LinearOptions{.bias = false});
  }
  Tensor operator()(Tensor x) const {
    for (const braid::nn::Linear& layer : layers) x = relu(layer(x));
    return x;
  }
  BRAID_FIELDS(layers)
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The median of forward and backward, of the slowest rank.
double step_seconds(parallel::Process& process, std::int64_t rows,
                    const parallel::DistributedHook& hook,
                    const std::function<void(Clock::time_point)>& begin = {}) {
  braid::manual_seed(1);
  parallel::DistributedDataParallel model(Net{}, process, {.bucket_bytes = kBucket, .hook = hook});
  const Tensor x = braid::randn({rows, kWidth});
  std::vector<double> times;
  for (int i = 0; i < kWarm + kSteps; ++i) {
    for (Tensor& p : braid::parameters(model)) p.set_grad({});
    process.communicator().barrier();
    const auto start = Clock::now();
    if (begin) begin(start);
    model(x).sum().backward();
    if (i >= kWarm) times.push_back(seconds_since(start));
  }
  const Tensor t = braid::full({1}, median(times), {.dtype = braid::DType::float64});
  process.communicator().all_reduce(t, parallel::ReduceOp::max);
  return t.item<double>();
}

}  // namespace

void wire(parallel::Process& process) {
  parallel::ProcessCommunicator& ranks = process.communicator();
  // without communication; when is each bucket full?
  std::vector<scale::Bucket> buckets;
  Clock::time_point start;
  const auto record = [&](parallel::ProcessCommunicator&, const parallel::GradientBucket& b) {
    buckets.push_back({static_cast<double>(b.buffer.numel()) * 4, seconds_since(start)});
    return parallel::HookResult{};
  };
  const double compute = step_seconds(process, kRows, record, [&](Clock::time_point now) {
    buckets.clear();
    start = now;
  });
  std::vector<double> reduce;
  for (const scale::Bucket& b : buckets) {
    const Tensor t = braid::zeros({static_cast<std::int64_t>(b.bytes / 4)});
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      ranks.barrier();
      const auto begin = Clock::now();
      ranks.all_reduce(t, parallel::ReduceOp::mean);
      times.push_back(seconds_since(begin));
    }
    reduce.push_back(median(times));
  }
  const scale::Step bound = scale::step_of(buckets, compute, reduce);
  const double step = step_seconds(process, kRows, {});
  const double few = step_seconds(process, kFew, {});
  const double few_bf16 = step_seconds(process, kFew, parallel::bf16_compress);
  if (process.rank() != 0) return;
  const scale::Step got{compute, bound.communicate, step};
  Json line;
  line.set("peer", "braid").set("buckets", static_cast<int>(buckets.size()));
  line.set("compute", 1e3 * compute).set("reduce", 1e3 * bound.communicate);
  line.set("bound", 1e3 * bound.total).set("step", 1e3 * step);
  line.set("hidden", got.hidden()).set("bound_hidden", bound.hidden());
  line.set("share", got.hidden() / bound.hidden());
  line.set("few", 1e3 * few).set("few_bf16", 1e3 * few_bf16);
  std::printf("%s\n", line.set("compression", few / few_bf16).text().c_str());
}

}  // namespace bench::ddp
