#pragma once
#include <string>
#include <vector>

#include "support/beside.hpp"

namespace bench {

/// One operation on a tensor far larger than the caches, without gradient, its result in fresh
/// memory at every call.
struct LargeOp {
  Beside row;
  /// the whole result, and the same by plain double loops
  std::function<std::vector<double>()> ours, want;
  /// numbers agree to 1e-5 of this or of their own size
  double scale;
};

/// softmax_4096, add_1e7 and layernorm_4096x1024. They share what they compute on; copies stay
/// cheap.
[[nodiscard]] std::vector<LargeOp> large_ops();

/// Empty if our result and every peer's agree with the plain loops; else what does not.
[[nodiscard]] std::string disagreement(const LargeOp& op, int threads, const Peers& peers);

}  // namespace bench
