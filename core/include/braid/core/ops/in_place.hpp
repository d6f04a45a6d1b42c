#pragma once
#include <braid/core/ops/sort.hpp>
#include <braid/core/tensor.hpp>

// The members of Tensor with a _ as functions: exp_(x) is x.exp_().
namespace braid {

#define BRAID_REST(...) __VA_OPT__(, ) __VA_ARGS__
#define BRAID_WITHOUT_FIRST(first, ...) (__VA_ARGS__)
#define BRAID_OR(value) = value
#define BRAID_IN_PLACE(name, parameters, arguments)                 \
  inline Tensor name##_(const Tensor& self BRAID_REST parameters) { \
    return self.name##_ BRAID_WITHOUT_FIRST arguments;              \
  }
#include <braid/core/internal/members.def>
#undef BRAID_REST
#undef BRAID_WITHOUT_FIRST

inline Tensor relu_(const Tensor& x) { return x.relu_(); }
inline Tensor zero_(const Tensor& x) { return x.zero_(); }
inline Tensor fill_(const Tensor& x, const Scalar& value) { return x.fill_(value); }
inline Tensor clamp_(const Tensor& x, const std::optional<Scalar>& min,
                     const std::optional<Scalar>& max = {}) {
  return x.clamp_(min, max);
}

}  // namespace braid
