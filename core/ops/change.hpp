#pragma once
// In-place forms of functions that have no kernel of their own for it.
#include <functional>

#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Sets t = f(t), with the gradient of f. f must not change its argument. Nothing is changed if f
/// throws. Throws ShapeError if the result has another shape, DTypeError if t's dtype cannot hold
/// it (floating point in an integer, numbers in bool), and as every in-place op does.
const Tensor& change(const char* op, const Tensor& t,
                     const std::function<Tensor(const Tensor& old)>& f);

}  // namespace braid::ops
