#pragma once
#include <cstdint>

#include <braid/core/internal/tree/fields.hpp>
#include <braid/core/tensor.hpp>

// The losses that have their own kernels. The others are in braid/nn/losses.hpp, which includes
// these.
namespace braid {

/// How the terms of a loss are combined.
enum class Reduction : std::uint8_t {
  mean,
  sum,
  none,  ///< not combined
  // LibTorch's spellings
  Mean = mean,
  Sum = sum,
  None = none
};

/// A loss over a part of a batch: the sum of its terms and their count (for a weighted loss, the
/// sum of the weights). Every loss returns it if its first argument is sum_and_count. Adding the
/// sums and the counts of all parts gives the loss of the whole batch, even if the parts differ in
/// size; the mean of the parts' means does not. It is a tree: replicas can return it, and gather
/// concatenates the parts.
struct LossSum {
  Tensor sum, count;
  /// Σ sum / Σ count over all parts.
  [[nodiscard]] Tensor mean() const;
  BRAID_FIELDS_DECLARED(sum, count)
};

/// The type of sum_and_count, the first argument of a loss that is to return a LossSum. All other
/// arguments stay the same; `reduction` is ignored.
///
///     LossSum part = cross_entropy(sum_and_count, logits, labels, {.ignore_index = 0});
struct SumAndCount {
  explicit SumAndCount() = default;
};
inline constexpr SumAndCount sum_and_count{};

/// The options of cross_entropy.
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  /// [classes], of the logits' dtype: the weight of each class; no gradient flows to it
  Tensor weight = {};
  std::int64_t ignore_index = -100;  ///< rows with this label are left out
  double label_smoothing = 0;        ///< this part of each label is spread evenly over all classes
};

/// -Σ_c t[c] w[c] log softmax(logits)[c], where t is the label's one-hot vector, or the given
/// probabilities, after smoothing: t (1 - ε) + ε / classes. Reduction::mean divides by the sum of
/// the labels' weights over the rows that are not ignored (NaN if there are none), or, for
/// probabilities, by the number of rows.
///
/// Shapes    logits [n, classes] or [n, classes, d1, …], labels [n] or [n, d1, …] int64, or
///           probabilities of the logits' shape and dtype → scalar; with Reduction::none the shape
///           of the labels. (PyTorch also takes [classes] without a batch.)
/// Types     logits floating point; float16 and bfloat16 are computed in float32
/// Gradient  w (softmax - t) dy, over the divisor for mean; also to probabilities; none to labels
///           and weight
/// Throws    ShapeError, DTypeError, DeviceError; IndexError for a label outside [0, classes) that
///           is not ignore_index (on a GPU when the host next waits for it); ArgumentError unless
///           0 <= label_smoothing <= 1
/// Source    Szegedy et al. 2016, arXiv:1512.00567 (label smoothing)
///
///     cross_entropy(logits, labels).backward();
///     cross_entropy(logits, labels, {.ignore_index = 0, .label_smoothing = 0.1});
///     cross_entropy(logits, labels, Reduction::none);  // one number for each row
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                   const CrossEntropyOptions& options = {});
[[nodiscard]] inline Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                          Reduction reduction) {
  return cross_entropy(logits, target, CrossEntropyOptions{.reduction = reduction});
}
/// LibTorch's other name.
[[nodiscard]] inline Tensor cross_entropy_loss(const Tensor& logits, const Tensor& target,
                                               const CrossEntropyOptions& options = {}) {
  return cross_entropy(logits, target, options);
}
[[nodiscard]] inline Tensor cross_entropy_loss(const Tensor& logits, const Tensor& target,
                                               const Tensor& weight, Reduction reduction,
                                               std::int64_t ignore_index = -100,
                                               double label_smoothing = 0) {
  return cross_entropy(logits, target,
                       CrossEntropyOptions{.reduction = reduction,
                                           .weight = weight,
                                           .ignore_index = ignore_index,
                                           .label_smoothing = label_smoothing});
}
/// The sum, and what mean would divide it by.
[[nodiscard]] LossSum cross_entropy(SumAndCount tag, const Tensor& logits, const Tensor& target,
                                    const CrossEntropyOptions& options = {});

/// The options of nll_loss.
struct NllOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< as in cross_entropy
  std::int64_t ignore_index = -100;
};

/// -w[label] log_probabilities[label]: the cross entropy of the output of log_softmax. Shapes, mean
/// and errors as cross_entropy with labels.
[[nodiscard]] Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels,
                              const NllOptions& options = {});
/// LibTorch's order of the arguments; an undefined weight is none.
[[nodiscard]] inline Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels,
                                     const Tensor& weight, Reduction reduction,
                                     std::int64_t ignore_index = -100) {
  return nll_loss(
      log_probabilities, labels,
      NllOptions{.reduction = reduction, .weight = weight, .ignore_index = ignore_index});
}
[[nodiscard]] LossSum nll_loss(SumAndCount tag, const Tensor& log_probabilities,
                               const Tensor& labels, const NllOptions& options = {});

/// (a - b)², combined over all elements. a and b have one shape and one floating-point dtype.
///
/// Gradient  2 (a - b) dy to a, times 1/numel for mean; its negative to b
[[nodiscard]] Tensor mse_loss(const Tensor& a, const Tensor& b,
                              Reduction reduction = Reduction::mean);
[[nodiscard]] LossSum mse_loss(SumAndCount tag, const Tensor& a, const Tensor& b);

}  // namespace braid
