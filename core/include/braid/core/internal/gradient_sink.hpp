#pragma once
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include <braid/core/tensor.hpp>

namespace braid {

/// Receives the gradients of some leaves in place of their grad(), each as soon as it is complete,
/// while the other nodes of the backward still run. At the end it writes grad() itself. For sums
/// over several processes.
///
/// One backward calls begin, receive for each of its leaves, finish, commit; or fail, at any point
/// before finish; or abandon, between finish and commit. If begin or finish throws, nothing else is
/// called. grad(outputs, inputs) calls nothing.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// A backward begins that reaches these leaves, given by the numbers of set_gradient_sink.
  /// Returns false if it should add to their grad() as usual; then nothing else is called.
  [[nodiscard]] virtual bool begin(std::span<const std::size_t> leaves) = 0;
  /// The factor for the gradients that the backward starts with. The gradients of all other leaves
  /// are divided by it at the end. Hooks of results of ops see the multiplied gradients.
  [[nodiscard]] virtual double seed_factor() const noexcept { return 1; }
  /// The gradient of a leaf is complete, after its hooks. It is undefined if no node contributed.
  /// Called on the thread of the node that contributed last.
  virtual void receive(std::size_t leaf, Tensor gradient) = 0;
  /// All nodes have run, and the gradients of the other leaves have been checked. If it throws,
  /// backward throws that exception and changes no leaf.
  virtual void finish() = 0;
  /// Writes grad() of its leaves.
  virtual void commit() noexcept = 0;
  /// The backward has failed with this exception.
  virtual void fail(const std::exception_ptr& error) noexcept = 0;
  /// finish has returned, but another sink of the backward has failed: no leaf changes.
  virtual void abandon() noexcept = 0;
};

/// Sets the sink of a leaf, which calls it `number`. An empty pointer removes it. The sink may be
/// destroyed earlier than the leaf.
///
/// Throws    AutogradError unless t is a leaf that requires a gradient
void set_gradient_sink(const Tensor& t, const std::shared_ptr<GradientSink>& sink,
                       std::size_t number = 0);
/// The sink of a leaf, or null.
[[nodiscard]] std::shared_ptr<GradientSink> gradient_sink(const Tensor& t);
/// Removes `sink` from the leaf, if it still is the leaf's sink. It may be in its destructor.
void remove_gradient_sink(const Tensor& t, const GradientSink* sink) noexcept;

}  // namespace braid
