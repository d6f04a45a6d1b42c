#pragma once
#include <cstdint>
#include <functional>

#include <braid/core/tensor.hpp>

// Hooks are rare: a node and a tensor have one flag, and what was registered stands in a table
// beside.
namespace braid::detail {

enum class HookKind : std::uint8_t { gradient, accumulated };

/// What the hooks of an owner (a Node, or the body of a leaf) make of its gradient, in the order of
/// registration. Called with no lock held. Throws what a hook throws; AutogradError for a
/// replacement that does not fit.
[[nodiscard]] Tensor run_hooks(const void* owner, std::uint32_t output_nr, Tensor gradient);
/// Calls the leaf's hooks for accumulated gradients.
void run_accumulated_hooks(const Tensor& leaf);
/// The owner is gone.
void forget_hooks(const void* owner) noexcept;

}  // namespace braid::detail
