#pragma once
#include <utility>

#include <braid/core/tree.hpp>

namespace braid::nn {

namespace detail {
/// Returns the tensor that a copy of a parameter or buffer holds: the same tensor inside clone and
/// replicate, else a copy of its numbers.
[[nodiscard]] Tensor copied(const Tensor& source);
[[nodiscard]] Tensor as_parameter(const Tensor& t, bool requires_grad);
}  // namespace detail

/// A tensor that is trained and saved. It is a leaf, and requires a gradient unless told otherwise.
///
/// Copies      copying a struct copies its parameters with their numbers, so a copied model has
///             separate weights. A single parameter must be copied explicitly,
///             `nn::Parameter own(fc.weight)`. `auto w = fc.weight` does not compile, because it
///             looks like a second name for the same weight; for that write
///             `const Tensor w = fc.weight` or use a reference. Copying a tied parameter outside
///             clone and replicate throws ArgumentError. (g++ cannot copy a std::array of
///             parameters; it can copy a std::vector of them, and an array of layers)
/// Assignment  copies too: `decoder.weight = encoder.weight` stores a new tensor with the same
///             numbers and does not tie them, unlike in PyTorch; use nn::tie(decoder.weight,
///             encoder.weight) for that. Optimizers made before keep the old tensor. (to,
///             load_state_dict and copy_ write into the existing tensor)
class Parameter : public Tensor {
 public:
  static constexpr tree::Kind braid_kind = tree::Kind::parameter;

  /// An undefined parameter: the layer does not have this parameter.
  Parameter() noexcept = default;
  /// Shares t's memory, detached from its graph. Throws DTypeError if requires_grad is set and t is
  /// not floating point.
  explicit Parameter(const Tensor& t, bool requires_grad = true)
      : Tensor(detail::as_parameter(t, requires_grad)) {}
  explicit Parameter(const Parameter& other) : Tensor(detail::copied(other)) {}
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(const Parameter& other) {
    Tensor::operator=(detail::copied(other));
    return *this;
  }
  Parameter& operator=(Parameter&&) noexcept = default;
  ~Parameter() = default;
};

/// A tensor that is saved but not trained, such as BatchNorm's running mean. Copying and assignment
/// work as for Parameter.
class Buffer : public Tensor {
 public:
  static constexpr tree::Kind braid_kind = tree::Kind::buffer;

  Buffer() noexcept = default;
  /// Holds t itself.
  explicit Buffer(Tensor t) noexcept : Tensor(std::move(t)) {}
  explicit Buffer(const Buffer& other) : Tensor(detail::copied(other)) {}
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(const Buffer& other) {
    Tensor::operator=(detail::copied(other));
    return *this;
  }
  Buffer& operator=(Buffer&&) noexcept = default;
  ~Buffer() = default;
};

/// Makes `a` the same tensor as `b`, permanently: clone, replicate, to, state_dict and
/// load_state_dict preserve the tie, and parameters() lists the tensor once. Throws ArgumentError
/// if one is undefined; ShapeError, DTypeError or DeviceError if shapes, dtypes or devices differ.
void tie(Parameter& a, Parameter& b);

}  // namespace braid::nn
