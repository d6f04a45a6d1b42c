#pragma once
// Dropout by a key: what the ops that drop share.
#include <cmath>

#include <braid/core/ops/dropout.hpp>

namespace braid::ops {

/// Words below it are dropped.
[[nodiscard]] inline std::uint64_t drop_threshold(double p) {
  return static_cast<std::uint64_t>(std::nearbyint(p * 0x1p32));
}
[[nodiscard]] inline double drop_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }
/// Throws ArgumentError unless 0 <= p <= 1.
void check_probability(const char* op, const char* name, double p);
/// x by the mask of the key. Recorded.
[[nodiscard]] Tensor dropout_by(const Tensor& x, double p, const RandomKey& key);

}  // namespace braid::ops
