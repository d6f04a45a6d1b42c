#pragma once
#include <concepts>

#include <braid/core/tensor.hpp>
#include <braid/nn/activations.hpp>
#include <braid/nn/layer.hpp>
#include <braid/nn/linear.hpp>

// Pairs of layers that one kernel computes.
namespace braid::nn::detail {

template <class First, class Second>
concept Fusible =
    std::same_as<First, Linear> && (std::same_as<Second, ReLU> || std::same_as<Second, GELU>);

/// True unless somebody looks at the result between the two: a hook, or an observer.
[[nodiscard]] inline bool may_fuse(const Module& first, const Module& second) noexcept {
  return !observed(first) && !observed(second);
}

/// Returns activation(linear(x)), computed in one pass. The bits are those of two.
[[nodiscard]] Tensor call_fused(const Linear& linear, const ReLU& activation, const Tensor& x);
[[nodiscard]] Tensor call_fused(const Linear& linear, const GELU& activation, const Tensor& x);

}  // namespace braid::nn::detail
