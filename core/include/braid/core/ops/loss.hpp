#pragma once
#include <cstdint>

#include <braid/core/tensor.hpp>
#include <braid/core/tree/fields.hpp>

// The losses that have kernels of their own; the others are in braid/nn/losses.hpp, where these are
// found too.
namespace braid {

/// How a loss is joined over the batch.
enum class Reduction : std::uint8_t {
  mean,
  sum,
  none  ///< not at all
};

/// A loss over a part of a batch: the sum of its terms and how many there were (of a weighted loss:
/// the sum of their weights). Parts of different sizes give the loss of the whole by adding both;
/// the mean of their means would not. A tree: replicas can return it, and gather joins the parts.
struct LossSum {
  Tensor sum, count;
  /// Σ sum / Σ count over all parts.
  [[nodiscard]] Tensor mean() const;
  BRAID_FIELDS(sum, count)
};

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  /// [classes], of the logits' dtype: how much each class counts; no gradient to it
  Tensor weight = {};
  std::int64_t ignore_index = -100;  ///< rows with this label count nothing
  double label_smoothing = 0;        ///< this much of each label is spread evenly over all classes
};

/// -Σ_c t[c] w[c] log softmax(logits)[c], with t the label's one-hot vector, or given
/// probabilities, after smoothing: t (1 - ε) + ε / classes. mean divides by the sum of the labels'
/// weights over the rows that are not ignored (NaN if there are none), with probabilities by the
/// number of rows.
///
/// Shapes    logits [n, classes] or [n, classes, d1, …], labels [n] or [n, d1, …] int64, or
///           probabilities of the logits' shape and dtype → scalar; with Reduction::none the shape
///           of the labels. (PyTorch takes [classes] without a batch too.)
/// Types     logits floating point; float16 and bfloat16 are computed in float32
/// Gradient  w (softmax - t) dy, over the divisor for mean; to probabilities too; none to labels
///           and weight
/// Throws    ShapeError, DTypeError, DeviceError; IndexError for a label outside [0, classes) that
///           is not ignore_index (on a GPU at the next wait); ArgumentError unless 0 <=
///           label_smoothing <= 1
/// Source    Szegedy et al. 2016, arXiv:1512.00567 (label smoothing)
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                   const CrossEntropyOptions& options = {});
[[nodiscard]] inline Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                          Reduction reduction) {
  return cross_entropy(logits, target, CrossEntropyOptions{.reduction = reduction});
}
/// The sum, and what mean would divide it by. options.reduction plays no part.
[[nodiscard]] LossSum cross_entropy_sum(const Tensor& logits, const Tensor& target,
                                        const CrossEntropyOptions& options = {});

struct NllOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< as in cross_entropy
  std::int64_t ignore_index = -100;
};

/// -w[label] log_probabilities[label]: cross entropy of what log_softmax gave. Shapes, mean and
/// errors as cross_entropy with labels.
[[nodiscard]] Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels,
                              const NllOptions& options = {});
[[nodiscard]] LossSum nll_loss_sum(const Tensor& log_probabilities, const Tensor& labels,
                                   const NllOptions& options = {});

/// (a - b)², joined over all elements. Shapes equal, floating point, one dtype. Gradient 2 (a - b)
/// dy, times 1/numel for mean; the negative to b.
[[nodiscard]] Tensor mse_loss(const Tensor& a, const Tensor& b,
                              Reduction reduction = Reduction::mean);
[[nodiscard]] LossSum mse_loss_sum(const Tensor& a, const Tensor& b);

}  // namespace braid
