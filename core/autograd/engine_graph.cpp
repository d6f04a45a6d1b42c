// Which nodes a backward runs, their order, and the places of their gradients.
#include <algorithm>
#include <atomic>
#include <unordered_set>

#include <braid/core/error.hpp>

#include "backward_engine.hpp"

namespace braid {

using autograd::Edge;
using autograd::Engine;
using autograd::Node;
using detail::Leaf;
using detail::Target;
using detail::Task;
using detail::Use;

bool Engine::claim(Node& node) {
  // Atomic, so that of two threads one gets an error. Only the owner changes or runs a node.
  const std::atomic_ref<void*> task(node.task_);
  void* owner = task.load(std::memory_order_relaxed);
  if (owner == this) return false;
  if (owner == nullptr && task.compare_exchange_strong(owner, this, std::memory_order_acquire))
    return true;
  throw AutogradError(
      str("backward: expected a graph that no other backward is using, got one in use (at ",
          node.name(), ")"));
}

bool Engine::owns(Node& node) const noexcept {
  return std::atomic_ref<void*>(node.task_).load(std::memory_order_relaxed) == this;
}

void Engine::release(Node& node) const noexcept {
  if (!uses_.empty())
    for (Edge& e : node.edges()) e.unused = false;
  std::atomic_ref<void*>(node.task_).store(nullptr, std::memory_order_release);
}

void Engine::find(const Ref<Node>& root, std::uint64_t least_depth) {
  const auto visit = [this](const Ref<Node>& node) {
    if (!claim(*node)) return;
    try {
      found_.push_back(node);
    } catch (...) {
      release(*node);
      throw;
    }
    any_prioritized_ = any_prioritized_ || node->prioritized();
  };
  std::size_t next = found_.size();
  visit(root);
  for (; next < found_.size(); ++next) {
    Node* const node = found_[next].get();
    for (const Edge& e : node->edges())
      if (e.node && e.node->depth() >= least_depth) visit(e.node);
  }
}

void Engine::order() {
  const auto deeper = [](const Ref<Node>& a, const Ref<Node>& b) {
    return a->depth() > b->depth();
  };
  if (!std::is_sorted(found_.begin(), found_.end(), deeper))
    std::stable_sort(found_.begin(), found_.end(), deeper);
  mark();
  if (any_prioritized_) move_prioritized_first();
}

void Engine::mark() {
  for (std::uint32_t i = 0; i < found_.size(); ++i) found_[i]->mark_ = i;
}

void Engine::prune(std::span<const Tensor> captures) {
  constexpr std::size_t kLinear = 16;  // for few captures, a linear search is faster than a set
  std::unordered_set<const TensorImpl*> many;
  uses_.assign(found_.size(), Use::left_out);
  for (const Tensor& t : captures) {
    const TensorImpl& impl = *t.id();
    if (impl.grad_fn && owns(*impl.grad_fn)) uses_[impl.grad_fn->mark_] = Use::captured;
    if (!impl.grad_fn && captures.size() > kLinear) many.insert(&impl);
  }
  const auto is_captured = [&](const TensorImpl* leaf) {
    if (captures.size() > kLinear) return many.contains(leaf);
    return std::any_of(captures.begin(), captures.end(),
                       [&](const Tensor& t) { return t.id() == leaf; });
  };
  for (std::size_t i = found_.size(); i-- > 0;)  // a node is behind all of its consumers
    for (Edge& e : found_[i]->edges()) {
      const bool wanted = e.node ? owns(*e.node) && uses_[e.node->mark_] != Use::left_out
                                 : e.leaf && is_captured(e.leaf.get());
      e.unused = !wanted;
      if (wanted) uses_[i] = Use::runs;
    }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (uses_[i] == Use::left_out) {
      release(*found_[i]);
      continue;
    }
    if (kept != i) found_[kept] = std::move(found_[i]), uses_[kept] = uses_[i];
    ++kept;
  }
  found_.resize(kept);
  uses_.resize(kept);
  mark();
}

void Engine::move_prioritized_first() {
  struct Place {
    std::uint32_t behind, index;
    bool early;  // true: directly behind that position; false: at it
  };
  std::vector<Place> places;
  std::vector<Ref<Node>> ordered;
  ordered.reserve(found_.size());  // allocations fail before any node is moved
  places.reserve(found_.size());
  for (std::uint32_t i = 0; i < found_.size(); ++i) places.push_back({i, i, false});
  for (std::uint32_t i = 0; i < found_.size(); ++i)
    for (const Edge& e : found_[i]->edges())
      // the last consumer overwrites the earlier ones
      if (e.node && e.node->prioritized() && owns(*e.node))
        places[e.node->mark_] = {i, e.node->mark_, true};
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.behind != b.behind ? a.behind < b.behind : a.early < b.early;
  });
  for (const Place& place : places) ordered.push_back(std::move(found_[place.index]));
  found_.swap(ordered);
  mark();
}

void Engine::prepare() {
  tasks_.reserve(found_.size());
  std::uint32_t slots = 0;
  for (const Ref<Node>& node : found_) {
    if (runs(tasks_.size()) && node->released()) detail::already_freed(node->name());
    tasks_.push_back({node.get(), slots, 0});
    slots += node->outputs();
    if (std::find(devices_.begin(), devices_.end(), node->device()) == devices_.end())
      devices_.push_back(node->device());
  }
  slots_.resize(slots);
  first_leaf_slot_ = slots;
  if (devices_.size() > 1) missing_ = std::make_unique<std::atomic<std::uint32_t>[]>(tasks_.size());
  for (Task& task : tasks_) {
    task.first_target = static_cast<std::uint32_t>(targets_.size());
    for (const Edge& e : task.node->edges()) {
      Target target;
      if (e.unused) {
        // nothing waits for this gradient
      } else if (e.node) {
        target.task = e.node->mark_;
        target.slot = tasks_[target.task].first_slot + e.output_nr;
        ++tasks_[target.task].contributions;
        if (missing_) missing_[target.task].fetch_add(1, std::memory_order_relaxed);
      } else if (e.leaf) {
        target.slot = leaf_slot(e.leaf.get());
      }
      targets_.push_back(target);
    }
  }
}

std::uint32_t Engine::leaf_slot(TensorImpl* impl) {
  constexpr std::size_t kLinear = 16;  // for few leaves, a linear search is faster than a map
  if (leaves_.size() < kLinear) {
    for (const Leaf& l : leaves_)
      if (l.impl == impl) return l.slot;
  } else {
    if (leaf_index_.empty())
      for (const Leaf& l : leaves_) leaf_index_.emplace(l.impl, l.slot);
    if (const auto at = leaf_index_.find(impl); at != leaf_index_.end()) return at->second;
    leaf_index_.emplace(impl, static_cast<std::uint32_t>(slots_.size()));
  }
  leaves_.push_back({impl, static_cast<std::uint32_t>(slots_.size()), {}, false, nullptr, 0});
  slots_.emplace_back();
  return leaves_.back().slot;
}

void Engine::place_captures(std::span<const Tensor> captures) {
  captures_.assign(captures.size(), Target::kNone);
  captured_now_.resize(captures.size());
  for (std::size_t i = 0; i < captures.size(); ++i) {
    TensorImpl* const impl = captures[i].id();
    if (impl->grad_fn) {
      if (owns(*impl->grad_fn))
        watched_.push_back(
            {impl->grad_fn->mark_, tasks_[impl->grad_fn->mark_].first_slot + impl->output_nr, i});
    } else {
      captures_[i] = leaf_slot(impl);
    }
  }
}

}  // namespace braid
