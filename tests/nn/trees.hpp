#pragma once
// Helpers for the state dicts and parameters of models.
#include <string>
#include <vector>

#include <braid/nn/nn.hpp>

namespace braid::test {

using Names = std::vector<std::string>;

/// Returns the names of a StateDict, or of named parameters.
inline Names keys(const auto& named) {
  Names list;
  for (const auto& [name, t] : named) list.push_back(name);
  return list;
}

/// Returns a copy that shares no memory with `dict`.
inline StateDict copied(const StateDict& dict) {
  StateDict copy;
  for (const auto& [key, t] : dict) copy.set(key, t.clone());
  return copy;
}

}  // namespace braid::test
