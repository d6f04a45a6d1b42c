#include <braid/nn/ordered_map.hpp>

namespace braid::nn::detail {

void name_again(std::string_view name) {
  throw ArgumentError(str("insert: expected a new name, got '", name, "' again"));
}

void no_such_name(std::string_view name) {
  throw IndexError(str("at: expected the name of an entry, got '", name, "'"));
}

}  // namespace braid::nn::detail
