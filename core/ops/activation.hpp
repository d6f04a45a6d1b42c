#pragma once
// Shared by ops that activations are a part of.
#include <string_view>

#include <braid/core/tensor.hpp>

namespace braid::ops {

/// The argument `approximate` of gelu: true for "tanh", false for "none". Throws ArgumentError.
[[nodiscard]] bool is_tanh(const char* op, std::string_view approximate);
/// dy gelu'(x). Recorded.
[[nodiscard]] Tensor gelu_backward(const Tensor& x, const Tensor& dy, bool tanh);

/// Clamps x, which has a floating dtype, to [low, high]. Recorded.
[[nodiscard]] Tensor clamp_values(const Tensor& x, double low, double high);
/// Clamps t, which has a floating dtype, in place. Not recorded.
void clamp_in_place(const Tensor& t, double low, double high);

}  // namespace braid::ops
