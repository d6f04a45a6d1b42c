#pragma once
#include <braid/core/tensor.hpp>

namespace braid::detail {

/// What mutable_grad() returns: the gradient of a tensor. An assignment replaces it.
class MutableGrad : public Tensor {
 public:
  explicit MutableGrad(const Tensor& of) : Tensor(of.grad()), of_(of) {}
  MutableGrad(const MutableGrad&) noexcept = default;
  void operator=(const Tensor& grad) && { of_.set_grad(grad); }
  void operator=(const MutableGrad& grad) && { of_.set_grad(grad); }

 private:
  Tensor of_;
};

}  // namespace braid::detail
