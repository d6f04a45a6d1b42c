#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/ops/loss.hpp>
#include <braid/core/tensor.hpp>

// The loss of a whole batch, computed from the losses of its parts.
namespace braid::parallel {

/// Adds the sums and counts of the parts, which may be on any devices: `total(model.replicas(x, y),
/// device).mean()` is the loss of the whole batch.
///
/// Shapes    sums and counts of one element each; the results have no dimensions
/// Gradient  for each part, on its device
/// Throws    ArgumentError for no parts or undefined ones; DeviceError for a device that does not
///           exist; ShapeError; DTypeError for parts of different dtypes
[[nodiscard]] LossSum total(std::span<const LossSum> parts, Device device);
[[nodiscard]] inline LossSum total(const std::vector<LossSum>& parts, Device device) {
  return total(std::span<const LossSum>(parts), device);
}

/// Returns Σ means[i] rows[i] / Σ rows: the mean over a batch from the means of its chunks. The
/// plain mean of the means differs from it if the chunks differ in size.
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
