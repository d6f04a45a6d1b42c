#include <braid/core/error.hpp>
#include <braid/nn/parameter_dict.hpp>

namespace braid::nn {

void ParameterDict::insert(std::string name, Parameter parameter) {
  if (contains(name))
    throw ArgumentError(str("ParameterDict: expected a new name, got '", name, "' again"));
  items_.emplace_back(std::move(name), std::move(parameter));
}

const Parameter& ParameterDict::at(std::string_view name) const {
  if (const Parameter* found = find(name)) return *found;
  throw IndexError(str("ParameterDict: expected the name of a parameter, got '", name, "'"));
}

const Parameter* ParameterDict::find(std::string_view name) const noexcept {
  for (const value_type& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

}  // namespace braid::nn
