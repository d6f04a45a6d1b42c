#pragma once
#include <string>
#include <vector>

#include "support/beside.hpp"

namespace bench {

/// One operation on a tensor much larger than the caches, without gradient. The result is in newly
/// allocated memory at every call.
struct LargeOp {
  Beside row;
  /// the whole result of Braid, and that of plain double loops
  std::function<std::vector<double>()> ours, want;
  /// numbers agree if they differ by at most 1e-5 times the larger of this and their size
  double scale;
};

/// Returns softmax_4096, add_1e7 and layernorm_4096x1024. Copies of a LargeOp share its operands,
/// so they are cheap.
[[nodiscard]] std::vector<LargeOp> large_ops();

/// Returns an empty text if the results of Braid and of every peer agree with the plain loops, else
/// a description of the difference.
[[nodiscard]] std::string disagreement(const LargeOp& op, int threads, const Peers& peers);

}  // namespace bench
