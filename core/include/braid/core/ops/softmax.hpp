#pragma once
#include <braid/core/tensor.hpp>

namespace braid {

/// y_i = exp(x_i - m) / Σ_j exp(x_j - m) along dim, m = max_j x_j.
///
/// Shapes    x of rank >= 1 → y, same shape
/// Types     floating point; float16 and bfloat16 accumulate in float32
/// Gradient  dx = y (dy - Σ y dy); keeps y, not x
/// Throws    ShapeError for rank 0; DTypeError; IndexError for a wrong dim
/// Source    Milakov & Gimelshein 2018, arXiv:1805.02867
[[nodiscard]] Tensor softmax(const Tensor& x, std::int64_t dim = -1);
/// log(softmax(x)), without the overflow. Gradient dx = dy - exp(y) Σ dy.
[[nodiscard]] Tensor log_softmax(const Tensor& x, std::int64_t dim = -1);

/// How a loss is joined over the batch.
enum class Reduction : std::uint8_t { mean, sum };

/// -log softmax(logits)[label], joined over the rows.
///
/// Shapes    logits [n, classes], labels [n] int64 → scalar
/// Types     logits floating point
/// Gradient  (softmax - onehot) dy, times 1/n for mean; none to labels
/// Throws    ShapeError, DTypeError, DeviceError; IndexError for a label outside [0, classes)
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction = Reduction::mean);

/// (a - b)², joined over all elements. Shapes equal, floating point, one dtype. Gradient 2 (a - b) dy, times 1/numel for mean; the negative to b.
[[nodiscard]] Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction = Reduction::mean);

}  // namespace braid
