#include <braid/core/autograd.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/parallel/distributed_hooks.hpp>

namespace braid::parallel {
namespace {

HookResult compress(ProcessCommunicator& ranks, const GradientBucket& bucket, DType dtype) {
  if (size_of(bucket.buffer.dtype()) <= size_of(dtype)) return all_reduce_hook(ranks, bucket);
  const NoGrad guard;
  const Tensor sent = (bucket.buffer / static_cast<double>(ranks.size())).to(dtype).contiguous();
  const Work work = ranks.start_all_reduce(sent, ReduceOp::sum, "compressed bucket");
  return {work, [sent] { return sent; }};  // copied back into the bucket's dtype
}

}  // namespace

HookResult all_reduce_hook(ProcessCommunicator& ranks, const GradientBucket& bucket) {
  return {ranks.start_all_reduce(bucket.buffer, ReduceOp::mean, "bucket"), {}};
}
HookResult fp16_compress(ProcessCommunicator& ranks, const GradientBucket& bucket) {
  return compress(ranks, bucket, DType::float16);
}
HookResult bf16_compress(ProcessCommunicator& ranks, const GradientBucket& bucket) {
  return compress(ranks, bucket, DType::bfloat16);
}

}  // namespace braid::parallel
