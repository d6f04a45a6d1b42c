#pragma once
// Dropout with a random key, shared by the ops that have dropout.
#include <cmath>

#include <braid/core/ops/dropout.hpp>

namespace braid::ops {

/// Returns the threshold for p: elements whose random 32-bit word is below it are dropped.
[[nodiscard]] inline std::uint64_t drop_threshold(double p) {
  return static_cast<std::uint64_t>(std::nearbyint(p * 0x1p32));
}
[[nodiscard]] inline double drop_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }
/// Throws ArgumentError unless 0 <= p <= 1.
void check_probability(const char* op, const char* name, double p);
/// Drops elements of x by the mask of the key, and scales the others. Recorded.
[[nodiscard]] Tensor dropout_by(const Tensor& x, double p, const RandomKey& key);

}  // namespace braid::ops
