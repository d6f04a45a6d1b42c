// The members of Tensor that are functions of the same name: internal/members.def lists them.
#include <braid/core/ops/bitwise.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "ops/change.hpp"

namespace braid {

#define BRAID_IN_PLACE(name, parameters, arguments)                                \
  const Tensor& Tensor::name##_ parameters const& {                                \
    return ops::change(#name "_", *this,                                           \
                       [&](const Tensor& self) { return braid::name arguments; }); \
  }                                                                                \
  Tensor Tensor::name##_ parameters const&& {                                      \
    return ops::change(#name "_", kept(#name "_"),                                 \
                       [&](const Tensor& self) { return braid::name arguments; }); \
  }
#include <braid/core/internal/members.def>

}  // namespace braid
