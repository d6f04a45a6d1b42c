#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/ops/loss.hpp>
#include <braid/core/tensor.hpp>

// The loss of a batch from those of its parts.
namespace braid::parallel {

/// Sum and count of the whole batch from those of its parts, which may be on any devices:
/// `total(model.replicas(x, y), device).mean()`.
///
/// Shapes    sums and counts of one element each; the results have no dimensions
/// Gradient  of each part on its device
/// Throws    ArgumentError for no parts or undefined ones; DeviceError for a device that does not
///           exist; ShapeError; DTypeError for parts of several types
[[nodiscard]] LossSum total(std::span<const LossSum> parts, Device device);
[[nodiscard]] inline LossSum total(const std::vector<LossSum>& parts, Device device) {
  return total(std::span<const LossSum>(parts), device);
}

/// Σ means[i] rows[i] / Σ rows: the mean over a batch from the means over its chunks, whose plain
/// mean is another number where they differ in size.
///
/// Shapes    means [m], floating point; rows m numbers >= 0, not all of them 0 (`chunk_sizes`,
///           without its empty chunks) → no dimensions
/// Throws    ShapeError for another number of means; DTypeError; ArgumentError
[[nodiscard]] Tensor weighted_mean(const Tensor& means, std::span<const std::int64_t> rows);
[[nodiscard]] inline Tensor weighted_mean(const Tensor& means,
                                          const std::vector<std::int64_t>& rows) {
  return weighted_mean(means, std::span<const std::int64_t>(rows));
}

}  // namespace braid::parallel
