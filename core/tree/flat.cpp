#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <braid/core/internal/tree/flat.hpp>

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

namespace {

/// Texts that live as long as the process. There are as many as different paths.
const std::string* interned(const std::string& text) {
  static std::mutex mutex;
  static auto* const texts = new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return &*texts->insert(text).first;
}

std::atomic<const std::string*>* path_of(const Node& node) {
  return node.type->path ? node.type->path(node.object) : nullptr;
}

}  // namespace

void set_paths(const Flat& flat, bool again) {
  const bool whole =
      again || (!flat.nodes.empty() && path_of(flat.nodes[0]) && !path_of(flat.nodes[0])->load());
  std::vector<bool> set;  // by node: it got its path now
  std::string prefix;     // the root's own path
  for (std::size_t i = 0; i < flat.nodes.size(); ++i) {
    const Node& node = flat.nodes[i];
    std::atomic<const std::string*>* const path = path_of(node);
    const bool below =
        !set.empty() && node.parent >= 0 && set[static_cast<std::size_t>(node.parent)];
    if (!whole && !below && (!path || path->load(std::memory_order_relaxed))) continue;
    if (set.empty()) {
      set.resize(flat.nodes.size());
      if (!whole && path_of(flat.nodes[0])) prefix = *path_of(flat.nodes[0])->load();
    }
    set[i] = true;
    if (!path) continue;
    std::string text = prefix;
    const std::string here = flat.path(node);
    if (!text.empty() && !here.empty()) text += '.';
    path->store(interned(text + here), std::memory_order_release);
  }
}

namespace detail {

void seen_through_base(const char* signature_of_t, const char* object) {
  const std::string base(::braid::detail::short_type_name(signature_of_t));
  throw ArgumentError(str("tree: expected a ", base, ", whose fields are known, got a ",
                          ::braid::detail::type_name(object), " that is seen through its base ",
                          base, ": its own fields would be left out"));
}

std::vector<std::size_t> sorted(const std::vector<Name>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(keys[a].index, keys[a].text) < std::tie(keys[b].index, keys[b].text);
  });
  return order;
}

}  // namespace detail

}  // namespace braid::tree
