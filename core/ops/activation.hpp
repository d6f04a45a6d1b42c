#pragma once
// Shared by the clamps: the kernel of the activations clamps floating types.
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Clamps x, which has a floating dtype, to [low, high]. Recorded.
[[nodiscard]] Tensor clamp_values(const Tensor& x, double low, double high);
/// Clamps t, which has a floating dtype, in place. Not recorded.
void clamp_in_place(const Tensor& t, double low, double high);

}  // namespace braid::ops
