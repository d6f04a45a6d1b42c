#include <algorithm>
#include <iterator>
#include <string>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/parallel/distributed_hooks.hpp>

#include "distributed/state.hpp"

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

namespace detail {

std::string hook_refused_by_join(const DistributedHook& hook) {
  using Function = HookResult (*)(ProcessCommunicator&, const GradientBucket&);
  if (!hook) return {};
  if (const Function* const function = hook.target<Function>()) {
    const Function known[] = {&all_reduce_hook, &fp16_compress, &bf16_compress};
    const bool is_known = std::ranges::find(known, *function) != std::end(known);
    return is_known ? std::string() : std::string("a function of the program");
  }
  if (hook.target<PowerSgd>() != nullptr) return "PowerSgd";
  return "the program's " + braid::detail::type_name(hook.target_type().name());
}

}  // namespace detail
}  // namespace braid::parallel
