#pragma once
// What the public headers declare, read from their text: the functions of ops/*.hpp and the members
// of Tensor that are ops.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {

struct Parameter {
  std::string type, name;
  std::vector<Parameter> fields = {};  ///< of an option struct that the same headers declare
};

/// Parameters of all overloads of each name, each once; of Tensor's members, those beside the
/// tensor itself.
using Declarations = std::map<std::string, std::vector<Parameter>>;

/// The functions of a header's text that stand in namespace braid or braid::nn itself, or those
/// members of `structure` that return a Tensor, tensors or const Tensor&. Operators other than
/// operator[] are left out: they are other names.
[[nodiscard]] Declarations declarations_in(std::string_view text, std::string_view structure = {});

/// Of all headers of core/include/braid/core/ops, of tensor.hpp and of the losses.
[[nodiscard]] const Declarations& declared_functions();

}  // namespace braid::test
