#pragma once
#include <braid/core/tensor.hpp>

// The members of Tensor with a _ as functions: exp_(x) is x.exp_().
namespace braid {

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
