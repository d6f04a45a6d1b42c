#pragma once
#include <braid/core/internal/kernel_args/attention.hpp>

#include "cuda/launch.hpp"

namespace braid::cuda {

/// The most keys of a sequence that a grid has to cover. Of sequences of several lengths the host
/// knows the caller's max_k, which may be far more than all rows, and the rows.
[[nodiscard]] inline std::int64_t most_keys(const AttentionArgs& args) {
  const AttentionSequences& of = args.sequences;
  return of.q_starts == nullptr || args.keys < of.k_rows ? args.keys : of.k_rows;
}

/// Attention of sequences of several lengths whose starts fit: they rise from 0 to the number of
/// rows at most. Those given may be any numbers, and the host cannot look at them without a wait.
/// For the kernels that are queued during its lifetime.
class FittedSequences {
 public:
  /// Also queues zeros for the rows of `args.out`, and -inf for those of lse, that are in no
  /// sequence.
  FittedSequences(const AttentionArgs& args, Stream& stream);
  /// The same for dq, dk and dv.
  FittedSequences(const AttentionBackwardArgs& args, Stream& stream);
  [[nodiscard]] const AttentionSequences& get() const noexcept { return fitted_; }

 private:
  Scratch starts_;
  AttentionSequences fitted_;
};

}  // namespace braid::cuda
