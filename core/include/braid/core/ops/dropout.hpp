#pragma once
#include <braid/core/random.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

/// In training, sets each element to 0 with probability p and scales the others by 1 / (1 - p).
/// Otherwise returns x. NaN and infinities times 0 are NaN, as in PyTorch.
///
/// Shapes    any
/// Types     floating point
/// Mask      a function of (seed, the op's stream, the element's row in the whole batch, its index
///           in the row): the same bits on every device and for every split by DataParallel
///           (random.hpp, RandomKey). It is not stored
/// Gradient  dy with the same mask
/// Throws    ArgumentError unless 0 <= p <= 1; DTypeError
/// Source    Srivastava et al. 2014, JMLR 15
[[nodiscard]] Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

/// Dropout of whole channels: x [n, channels, length], or [channels, length].
[[nodiscard]] Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true);
/// Dropout of whole channels: x [n, channels, height, width], or [channels, height, width].
[[nodiscard]] Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace braid
