#include "distributed/buckets.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <braid/core/ops/create.hpp>

#include "primitives/views.hpp"

namespace braid::parallel::distributed {

std::vector<BucketPlan> plan_buckets(std::span<const Tensor> parameters,
                                     std::span<const std::size_t> order, std::size_t first_bytes,
                                     std::size_t bytes) {
  constexpr std::size_t kAlign = 64;
  struct Open {
    BucketPlan plan;
    std::size_t bytes = 0, last = 0;  // last: the position in the order of its last parameter
    bool first = true;
  };
  std::map<DType, Open> open;
  std::vector<std::pair<std::size_t, BucketPlan>> closed;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Tensor& p = parameters[order[at]];
    Open& bucket = open[p.dtype()];
    bucket.plan.dtype = p.dtype();
    bucket.plan.parameters.push_back(order[at]);
    bucket.plan.offsets.push_back(bucket.plan.numel);
    const auto line = static_cast<std::int64_t>(kAlign / size_of(p.dtype()));
    bucket.plan.numel += (p.numel() + line - 1) / line * line;
    bucket.bytes += bytes_of(p);
    bucket.last = at;
    if (bucket.bytes < (bucket.first ? first_bytes : bytes)) continue;
    closed.emplace_back(at, std::exchange(bucket.plan, {}));
    bucket.bytes = 0;
    bucket.first = false;
  }
  for (auto& [dtype, bucket] : open)
    if (!bucket.plan.parameters.empty()) closed.emplace_back(bucket.last, std::move(bucket.plan));
  std::sort(closed.begin(), closed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BucketPlan> plans;
  for (auto& [last, plan] : closed) plans.push_back(std::move(plan));
  return plans;
}

Bucket make_bucket(BucketPlan plan, std::span<const Tensor> parameters, std::int64_t extra) {
  Bucket bucket;
  const Device device = parameters[plan.parameters.front()].device();
  bucket.buffer = zeros({plan.numel + extra}, {.device = device, .dtype = plan.dtype});
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const Tensor& p = parameters[plan.parameters[i]];
    const std::size_t begin = static_cast<std::size_t>(plan.offsets[i]) * size_of(plan.dtype);
    bucket.views.push_back(
        make_tensor_on(Storage::slice(bucket.buffer.storage(), begin, bytes_of(p)), p.shape(),
                       contiguous_strides(p.shape()), 0, plan.dtype));
  }
  bucket.plan = std::move(plan);
  return bucket;
}

}  // namespace braid::parallel::distributed
