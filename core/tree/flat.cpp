#include <unordered_map>

#include <braid/core/tree/flat.hpp>

namespace braid::tree {

namespace {

void append(std::string& path, const Name& name) {
  if (name.empty()) return;  // an optional adds no part to the path
  if (!path.empty()) path += '.';
  if (name.is_index) path += std::to_string(name.index);
  else path += name.text;
}

std::string step(const std::string& path) { return path.empty() ? "the root" : "'" + path + "'"; }

}  // namespace

std::string Flat::path(std::int32_t parent, const Name& name) const {
  std::vector<const Name*> steps{&name};
  for (; parent >= 0; parent = nodes[static_cast<std::size_t>(parent)].parent)
    steps.push_back(&nodes[static_cast<std::size_t>(parent)].name);
  std::string path;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) append(path, **at);
  return path;
}

std::vector<std::size_t> Flat::first_of() const {
  std::vector<std::size_t> first(leaves.size());
  std::unordered_map<const TensorImpl*, std::size_t> seen;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const TensorImpl* id = leaves[i].tensor->id();
    first[i] = id ? seen.try_emplace(id, i).first->second : i;
  }
  return first;
}

std::string Flat::difference(const Flat& other) const {
  for (std::size_t i = 0; i < nodes.size() && i < other.nodes.size(); ++i) {
    const Node &a = nodes[i], &b = other.nodes[i];
    if (a.parent != b.parent || a.name != b.name || a.type->form != b.type->form)
      return step(path(a)) + " is missing";
    if (a.size != b.size) {
      return step(path(a)) + " has " + std::to_string(b.size) +
             (b.size == 1 ? " element" : " elements") + " where " + std::to_string(a.size) +
             (a.size == 1 ? " was" : " were") + " expected";
    }
  }
  if (nodes.size() > other.nodes.size())
    return step(path(nodes[other.nodes.size()])) + " is missing";
  if (nodes.size() < other.nodes.size())
    return step(other.path(other.nodes[nodes.size()])) + " was not expected";
  for (std::size_t i = 0; i < leaves.size() && i < other.leaves.size(); ++i) {
    const Leaf &a = leaves[i], &b = other.leaves[i];
    if (a.parent != b.parent || a.name != b.name || a.kind != b.kind)
      return step(path(a)) + " is missing";
    if (a.tensor->defined() != b.tensor->defined())
      return step(path(a)) + (b.tensor->defined() ? " is defined" : " is undefined");
  }
  if (leaves.size() > other.leaves.size())
    return step(path(leaves[other.leaves.size()])) + " is missing";
  if (leaves.size() < other.leaves.size())
    return step(other.path(other.leaves[leaves.size()])) + " was not expected";
  return {};
}

}  // namespace braid::tree
