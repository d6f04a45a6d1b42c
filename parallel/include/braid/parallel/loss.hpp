#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/ops/loss.hpp>
#include <braid/core/tensor.hpp>

// The loss of a whole batch, computed from the losses of its parts.
namespace braid::parallel {

/// Adds the sums and the counts of the parts, on `device`. The parts may be on any devices.
/// `total(model.replicas(x, y), device).mean()` is the loss of the whole batch.
///
/// Shapes    sums and counts of one element each; the results have no dimensions
/// Gradient  each part gets its gradient on its own device
/// Throws    ArgumentError if there are no parts, or undefined tensors in one; DeviceError for a
///           device that does not exist; ShapeError
///
///     struct WithLoss : nn::Module {
///       Net net;
///       LossSum operator()(const Tensor& x, const Tensor& labels) const {
///         return cross_entropy(sum_and_count, net(x), labels);
///       }
///       BRAID_FIELDS(net)
///     };
///     void step(const parallel::DataParallel<WithLoss>& model) {
///       parallel::total(model.replicas(x, labels), device).mean().backward();
///     }
[[nodiscard]] LossSum total(std::span<const LossSum> parts, Device device);
[[nodiscard]] LossSum total(const std::vector<LossSum>& parts, Device device);

/// Returns the mean over a batch from the means of its chunks: Σ means[i] rows[i] / Σ rows. The
/// plain mean of the means differs from it if the chunks differ in size.
///
/// Shapes    means [m] → no dimensions
/// Types     floating point
/// rows      m numbers >= 0, not all of them 0: those of `chunk_sizes` without the empty chunks
/// Throws    ShapeError for another number of means; DTypeError; ArgumentError for other rows
[[nodiscard]] Tensor weighted_mean(const Tensor& means, std::span<const std::int64_t> rows);
[[nodiscard]] Tensor weighted_mean(const Tensor& means, const std::vector<std::int64_t>& rows);

}  // namespace braid::parallel
