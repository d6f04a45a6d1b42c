#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include <braid/core/internal/gradient_sink.hpp>
#include <braid/core/tensor.hpp>

// Hooks are rare. So a node or a tensor has only a flag, and the hooks are in a separate table.
namespace braid::autograd { class Node; }

namespace braid::detail {

/// retained: of a node, it adds to the grad() of a tensor that the node made; of that tensor, it
/// ends with it.
enum class HookKind : std::uint8_t { gradient, accumulated, retained };

/// Calls the gradient hooks of an owner (a Node, or the TensorImpl of a leaf) in the order of
/// registration, then those of retain_grad, and returns the resulting gradient. Holds no lock
/// during the calls. Passes on what a hook throws. Throws AutogradError if a replacement differs in
/// shape, dtype or device.
[[nodiscard]] Tensor run_hooks(const void* owner, std::uint32_t output_nr, Tensor gradient);
/// The tensor has a new graph: moves its hook of retain_grad, if it has one, to that node.
void move_retained(const TensorImpl& tensor, autograd::Node& node, std::uint32_t output_nr);
/// Calls the leaf's hooks for accumulated gradients.
void run_accumulated_hooks(const Tensor& leaf);
/// The sink of a leaf, and the number that the sink gave it.
struct SinkOf {
  std::weak_ptr<GradientSink> sink;
  const GradientSink* address = nullptr;  // also after its end
  std::size_t number = 0;
};
[[nodiscard]] SinkOf sink_of(const TensorImpl* leaf);
/// Removes all hooks of an owner that is being destroyed, and its sink.
void forget_hooks(const void* owner) noexcept;

}  // namespace braid::detail
