#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid::parallel::distributed {

/// The parameters that share a bucket, in the order in which their gradients are expected.
struct BucketPlan {
  DType dtype = DType::float32;
  std::vector<std::size_t> parameters;
  std::vector<std::int64_t> offsets;  ///< of each, in elements
  std::int64_t numel = 0;             ///< with gaps, so that each gradient begins a cache line
};

/// Divides the parameters into buckets, in this order, separately by dtype. A bucket is closed when
/// it has reached `first_bytes` (the first of a dtype) or `bytes`. Buckets are in the order in
/// which they are complete.
[[nodiscard]] std::vector<BucketPlan> plan_buckets(std::span<const Tensor> parameters,
                                                   std::span<const std::size_t> order,
                                                   std::size_t first_bytes, std::size_t bytes);

/// A bucket with its memory.
struct Bucket {
  BucketPlan plan;
  Tensor buffer;              ///< [plan.numel + extra]
  std::vector<Tensor> views;  ///< of each parameter, with separate version counters
  std::size_t pending = 0;    ///< gradients to come
};
/// Allocates zeros. `extra` elements follow the gradients.
[[nodiscard]] Bucket make_bucket(BucketPlan plan, std::span<const Tensor> parameters,
                                 std::int64_t extra);

}  // namespace braid::parallel::distributed
