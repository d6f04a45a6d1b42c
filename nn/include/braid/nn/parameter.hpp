#pragma once
#include <utility>

#include <braid/core/tree.hpp>

namespace braid::nn {

namespace detail {
/// What a copy of a parameter or buffer holds: the same tensor inside clone and replicate, else
/// numbers of its own.
[[nodiscard]] Tensor copied(const Tensor& source);
[[nodiscard]] Tensor as_parameter(const Tensor& t, bool requires_grad);
}  // namespace detail

/// A tensor that is trained and saved. It is a leaf, and requires a gradient unless told otherwise.
///
/// Copies      a copied model has weights of its own: where a struct is copied, its parameters are,
///             with their numbers. One alone is copied only where that is spelled out,
///             `nn::Parameter own(fc.weight)`: `auto w = fc.weight` does not compile, because it
///             reads like a second name. That is `const Tensor w = fc.weight` or a reference.
///             Copying a tied one outside clone and replicate throws ArgumentError. (g++ does not
///             copy a std::array of them; it does copy a std::vector, or an array of layers)
/// Assignment  copies as well: `decoder.weight = encoder.weight` puts a new tensor with the same
///             numbers there, and ties nothing, unlike PyTorch's; nn::tie(decoder.weight,
///             encoder.weight) does. Optimizers made before keep the old tensor (to,
///             load_state_dict and copy_ write into the one there is)
class Parameter : public Tensor {
 public:
  static constexpr tree::Kind braid_kind = tree::Kind::parameter;

  /// Undefined: a layer without this parameter.
  Parameter() noexcept = default;
  /// Shares the numbers of t, without its history. Throws DTypeError if it shall require a gradient
  /// and is not floating point.
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

/// A tensor that is saved but not trained, such as BatchNorm's running mean. Is copied and assigned
/// as a Parameter is.
class Buffer : public Tensor {
 public:
  static constexpr tree::Kind braid_kind = tree::Kind::buffer;

  Buffer() noexcept = default;
  /// The same tensor.
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

/// Makes `a` the same tensor as `b`, for good: clone, replicate, to, state_dict and load_state_dict
/// keep it so, parameters() lists it once. Throws ArgumentError if one is undefined, ShapeError,
/// DTypeError or DeviceError if they differ in that.
void tie(Parameter& a, Parameter& b);

}  // namespace braid::nn
