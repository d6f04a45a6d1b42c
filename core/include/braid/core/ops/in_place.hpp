#pragma once
#include <braid/core/tensor.hpp>

// The members of Tensor with a _ as functions.
namespace braid {

/// name_(x, …) is x.name_(…), for each function of internal/members.def that has such a form, and
/// for the others below: it writes the result of the function into x and returns x.
///
/// Shapes    the function's result must have x's shape, else ShapeError
/// Types     the dtype of x stays; DTypeError if it cannot hold the result
/// Gradient  recorded, as the function's; AutogradError for a leaf that requires one
///
///     exp_(clamp_(x, 0, 1));

#define BRAID_REST(...) __VA_OPT__(, ) __VA_ARGS__
#define BRAID_OR(value) = value
#define BRAID_IN_PLACE(name, parameters, arguments) \
  Tensor name##_(const Tensor& self BRAID_REST parameters);
#include <braid/core/internal/members.def>
#undef BRAID_REST

Tensor relu_(const Tensor& x);
Tensor zero_(const Tensor& x);
Tensor fill_(const Tensor& x, const Scalar& value);
Tensor clamp_(const Tensor& x, const std::optional<Scalar>& min,
              const std::optional<Scalar>& max = {});

}  // namespace braid
