#include <braid/core/internal/kernel_args/attention.hpp>
#include <braid/core/internal/kernel_args/conv.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/internal/multiply_adds.hpp>

// The formulas are here and not in the header, so that a source that launches one kernel is not
// compiled again when the arguments of another change.
namespace braid {

namespace {

std::int64_t multiply_adds_of(const ConvShape& s) noexcept {
  return s.n * s.out * s.out_size[0] * s.out_size[1] * (s.in / s.groups) * s.kernel[0] *
         s.kernel[1];
}

}  // namespace

std::int64_t multiply_adds_of(const GemmArgs& args) noexcept {
  return args.batch * args.m * args.n * args.k;
}
std::int64_t multiply_adds_of(const GemmPairArgs& args) noexcept {
  return multiply_adds_of(args.first) + multiply_adds_of(args.second);
}
std::int64_t multiply_adds_of(const ConvArgs& args) noexcept {
  return multiply_adds_of(args.shape);
}
std::int64_t multiply_adds_of(const ConvDataArgs& args) noexcept {
  return multiply_adds_of(args.shape);
}
std::int64_t multiply_adds_of(const AttentionArgs& args) noexcept {
  const std::int64_t queries =
      args.sequences.q_starts == nullptr ? args.batch * args.queries : args.sequences.q_rows;
  return args.heads * queries * args.keys * (args.width + args.value_width);
}

}  // namespace braid
