#pragma once
#include <braid/core/ops/loss.hpp>  // so that this header declares cross_entropy too
#include <braid/core/tensor.hpp>

namespace braid {

/// y_i = exp(x_i - m) / Σ_j exp(x_j - m) along dim, m = max_j x_j.
///
/// Shapes    x → y, same shape, contiguous
/// Types     floating point; float16 and bfloat16 accumulate in float32
/// Gradient  dx = y (dy - Σ y dy); saves y, not x
/// Throws    DTypeError; IndexError for an invalid dim (a scalar has dims 0 and -1)
/// Source    Milakov & Gimelshein 2018, arXiv:1805.02867
[[nodiscard]] Tensor softmax(const Tensor& x, std::int64_t dim = -1);
/// log(softmax(x)), without overflow.
///
/// Gradient  dx = dy - exp(y) Σ dy
[[nodiscard]] Tensor log_softmax(const Tensor& x, std::int64_t dim = -1);
/// The same of x.to(dtype). The result has that dtype, inside of an Autocast too.
[[nodiscard]] Tensor softmax(const Tensor& x, std::int64_t dim, DType dtype);
[[nodiscard]] Tensor log_softmax(const Tensor& x, std::int64_t dim, DType dtype);

}  // namespace braid
