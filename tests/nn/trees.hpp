#pragma once
// State dicts and parameters of models, as tests look at them.
#include <string>
#include <vector>

#include <braid/nn/nn.hpp>

namespace braid::test {

using Names = std::vector<std::string>;

/// The names of a StateDict, or of named parameters.
inline Names keys(const auto& named) {
  Names list;
  for (const auto& [name, t] : named) list.push_back(name);
  return list;
}

/// A copy whose numbers no model shares.
inline StateDict copied(const StateDict& dict) {
  StateDict copy;
  for (const auto& [key, t] : dict) copy.set(key, t.clone());
  return copy;
}

}  // namespace braid::test
