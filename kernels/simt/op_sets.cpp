#include "simt/op_sets.hpp"

#include <algorithm>
#include <utility>

namespace braid::simt {

namespace { constexpr std::size_t kMost = 48; }

void OpSets::clear() {
  numbers_.clear();
  steps_.clear();
  sets_.assign(1, &numbers_.emplace(Set{}, 0).first->first);
}

std::uint32_t OpSets::number(Set set) {
  std::sort(set.begin(), set.end());
  if (set.size() > kMost) set.erase(set.begin());
  const auto [found, added] =
      numbers_.emplace(std::move(set), static_cast<std::uint32_t>(sets_.size()));
  if (added) sets_.push_back(&found->first);
  return found->second;
}

}  // namespace braid::simt
