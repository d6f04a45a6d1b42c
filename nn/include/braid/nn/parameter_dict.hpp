#pragma once
#include <braid/nn/ordered_map.hpp>
#include <braid/nn/parameter.hpp>

namespace braid::nn {

/// Parameters by name, in insertion order: for layers whose number of parameters is known only at
/// run time. With BRAID_UNNAMED_FIELD its names appear in a layer's state dict without a prefix.
using ParameterDict = OrderedMap<Parameter>;

}  // namespace braid::nn

/// BRAID_FIELDS of one field, whose name is left out of the paths: `weight_ih_l0`, not
/// `weights.weight_ih_l0`.
#define BRAID_UNNAMED_FIELD(field)                                                       \
  auto braid_fields() -> decltype(::std::tie(field)) { return ::std::tie(field); }       \
  auto braid_fields() const -> decltype(::std::tie(field)) { return ::std::tie(field); } \
  static constexpr ::std::string_view braid_names() { return {}; }                       \
  void braid_owner() const {}
