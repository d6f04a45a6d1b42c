#include <functional>

#include <braid/core/error.hpp>
#include <braid/core/state_dict.hpp>

namespace braid {

std::size_t detail::NameHash::operator()(std::string_view name) const noexcept {
  return std::hash<std::string_view>()(name);
}

StateDict::StateDict(std::initializer_list<value_type> entries)
    : StateDict(std::vector<value_type>(entries)) {}

StateDict::StateDict(std::vector<value_type> entries) : entries_(std::move(entries)) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!index_.try_emplace(entries_[i].first, i).second)
      throw ArgumentError("StateDict: expected every name once, got '" + entries_[i].first +
                          "' twice");
  }
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const Tensor& StateDict::at(std::string_view name) const {
  if (const Tensor* found = find(name)) return *found;
  throw ArgumentError(str("StateDict: expected one of its ", size(), " names, got '", name, "'"));
}

void StateDict::set(std::string name, Tensor tensor) {
  const auto [at, fresh] = index_.try_emplace(name, entries_.size());
  if (!fresh) {
    entries_[at->second].second = std::move(tensor);
    return;
  }
  try {
    entries_.emplace_back(std::move(name), std::move(tensor));
  } catch (...) {
    index_.erase(at);
    throw;
  }
}

bool StateDict::erase(std::string_view name) {
  const auto at = index_.find(name);
  if (at == index_.end()) return false;
  const std::size_t i = at->second;
  index_.erase(at);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  for (auto& [key, position] : index_) position -= position > i;
  return true;
}

}  // namespace braid
