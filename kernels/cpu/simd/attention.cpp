#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/attention_backward.hpp"
#include "cpu/simd/attention_forward.hpp"

// Attention. The forward pass is split into tiles of queries, the backward pass into heads of
// keys, each with its query heads; one thread computes each. The split depends on the shape alone.
namespace braid::cpu::BRAID_ISA {

void attention(const AttentionArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("attention", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.heads <= 0 || args.queries <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    const std::int64_t tiles = (args.queries + kSide - 1) / kSide;
    const auto job = [&](std::int64_t n) {
      attention_of_queries<E>(args, n / tiles / args.heads, n / tiles % args.heads,
                              n % tiles * kSide);
    };
    parallel_for(stream, args.batch * args.heads * tiles, job);
    return true;
  });
}

void attention_backward(const AttentionBackwardArgs& args, Stream& stream) {
  const AttentionArgs& f = args.forward;
  if (f.dtype < DType::float16) fail_dtype("attention_backward", "a floating-point dtype", f.dtype);
  if (f.batch <= 0 || f.heads <= 0) return;
  with_floating(f.dtype, [&]<class E>() {
    const std::int64_t key_heads = f.heads / f.group;
    const auto job = [&](std::int64_t n) {
      attention_backward_of_group<E>(args, n / key_heads, n % key_heads);
    };
    parallel_for(stream, f.batch * key_heads, job);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
