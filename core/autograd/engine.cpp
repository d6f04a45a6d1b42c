// One backward: finds the nodes, sorts them by depth, runs them, adds the gradients to the leaves.
//
// A node is deeper than everything that it consumes. So with the deepest nodes first, every
// gradient is complete before it is used. This order depends on the graph alone. The nodes of one
// device run in this order on one thread. With several devices, the worker of each device runs that
// device's nodes, and waits before each node until the consumers of that node are done. There is no
// deadlock: of the nodes that are not done, the first one in the list has no consumer to wait for.
// Contributions to one gradient are added in the order of the nodes that produced them, so that
// results are the same bits for any timing of the threads.
#include <algorithm>
#include <atomic>
#include <mutex>

#include <braid/core/autocast.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/internal/worker.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/trace.hpp>

#include "backward_engine.hpp"
#include "engine.hpp"
#include "hooks.hpp"
#include "ops/common.hpp"

namespace braid {

using autograd::Edge;
using autograd::Engine;
using autograd::Node;
using detail::Leaf;
using detail::Slot;
using detail::Target;
using detail::Task;

namespace {

Tensor joined(Tensor a, const Tensor& b, bool create_graph) {
  if (!create_graph && detail::sole_owner(a) && a.shape() == b.shape() && a.dtype() == b.dtype()) {
    a.add_(b);
    return a;
  }
  return add(a, b);
}

}  // namespace

#ifndef NDEBUG

namespace {
thread_local const Engine* innermost = nullptr;  // the engine that this thread works for
// owners() maps the leaves that a backward is about to add to. Mutex and map are leaked, because
// threads may still run while the process exits.
std::mutex& claims_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::unordered_map<const TensorImpl*, const Engine*>& owners() {
  static auto* const map = new std::unordered_map<const TensorImpl*, const Engine*>;
  return *map;
}
}  // namespace

class Engine::Inside {
 public:
  explicit Inside(const Engine* engine) noexcept : before_(std::exchange(innermost, engine)) {}
  ~Inside() { innermost = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const Engine* before_;
};

Engine::Engine(bool retain, bool create) : retain_(retain), create_(create), outer_(innermost) {}

void Engine::claim_leaves() {
  claims_.reserve(leaves_.size());
  const std::lock_guard lock(claims_mutex());
  for (const Leaf& l : leaves_) {
    const auto [at, fresh] = owners().try_emplace(l.impl, this);
    const Engine* around = outer_;
    while (!fresh && around != nullptr && around != at->second) around = around->outer_;
    if (!fresh && around == nullptr)  // the destructor releases the claims made so far
      throw AutogradError(
          str("backward: expected leaves that no other thread's backward is adding to, got one of "
              "shape ",
              l.impl->shape,
              " in use; give each thread leaves of its own, call grad() and add, or use "
              "DataParallel"));
    claims_.push_back({l.impl, fresh ? nullptr : at->second});
    at->second = this;
  }
}

void Engine::release_leaves() noexcept {
  if (claims_.empty()) return;
  const std::lock_guard lock(claims_mutex());
  for (const Claim& c : claims_) {
    if (c.before == nullptr) owners().erase(c.leaf);
    else owners()[c.leaf] = c.before;
  }
}

#else

class Engine::Inside {
 public:
  explicit Inside(const Engine* /*engine*/) noexcept {}
  ~Inside() {}  // not trivial, so that unused variables of this type cause no warning
};
Engine::Engine(bool retain, bool create) : retain_(retain), create_(create) {}
void Engine::claim_leaves() {}
void Engine::release_leaves() noexcept {}

#endif

void Engine::run(std::span<const Tensor> roots, std::span<const Tensor> captures) {
  for (const Tensor& root : roots)
    if (root.id()->grad_fn) find(root.id()->grad_fn);
  order();
  prepare();
  place_captures(captures);
  for (const Tensor& root : roots)
    if (!root.id()->grad_fn) (void)leaf_slot(root.id());
  if (captures.empty()) {  // grad() adds to no leaf
    claim_leaves();
    open_sinks();
  }
  try {
    for (std::size_t i = 0; i < roots.size(); ++i) seed(roots[i], std::move(seeds_[i]));
    run_nodes(captures);
  } catch (...) {
    fail_sinks();
    throw;
  }
}

void Engine::run_nodes(std::span<const Tensor> captures) {
  const GradMode mode(create_);
  const Autocast as_recorded(DType::bfloat16, false);
  const Inside inside(this);
  const detail::Joins::Scope joins(joins_);
  feed_sinks();
  if (devices_.size() <= 1) {
    const trace::Span span("backward", trace::Phase::compute,
                           devices_.empty() ? Device() : devices_.front());
    for (std::uint32_t i = 0; i < tasks_.size(); ++i) execute(i);
  } else {
    run_on_all();
  }
  joins.run();
  hook_leaves(captures);
}

Engine& Engine::of(const Node& node) noexcept { return *static_cast<Engine*>(node.task_); }

Tensor Engine::captured(std::size_t i) {
  return captures_[i] == Target::kNone ? captured_now_[i] : take(captures_[i]);
}

void Engine::commit_leaves() {
  const GradMode mode(create_);
  const Inside inside(this);
  try {
    check_values();
    finish_sinks();
  } catch (...) {
    fail_sinks();
    throw;
  }
  for (const Leaf& l : leaves_) {
    if (!l.value.defined()) continue;
    if (auto* const capture = detail::StepCapture::current()) capture->reads_grad(*l.impl);
    if (l.in_place) Tensor(l.impl->grad).add_(l.value);
    else l.impl->grad = l.value.impl();
  }
  for (const auto& sink : sinks_) sink->commit();
  on_devices_of_leaves(
      [](const Leaf& l) { return l.value.defined() || (l.sink && l.impl->grad); },
      [](const Leaf& l) { detail::run_accumulated_hooks(Tensor(Ref<TensorImpl>(l.impl))); });
}

void Engine::hook_leaves(std::span<const Tensor> captures) {
  const auto wanted = [&](const Leaf& l) {
    return captures.empty() || std::any_of(captures.begin(), captures.end(),
                                           [&](const Tensor& t) { return t.id() == l.impl; });
  };
  on_devices_of_leaves(wanted, [this](const Leaf& l) {
    Tensor gradient = take(l.slot);
    if (gradient.defined())
      slots_[l.slot].first = detail::run_hooks(l.impl, 0, std::move(gradient));
  });
}

template <class Wanted, class F>
void Engine::on_devices_of_leaves(const Wanted& wanted, const F& f) {
  std::vector<const Leaf*> list;
  for (const Leaf& l : leaves_)
    if (l.impl->hooked && wanted(l)) list.push_back(&l);
  if (list.empty()) return;
  if (devices_.size() <= 1) {
    for (const Leaf* l : list) f(*l);
    return;
  }
  std::vector<std::exception_ptr> errors(list.size());
  run_on_devices(devices_, [&](std::size_t d) {
    const GradMode mode(create_);
    const Inside inside(this);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto at = std::find(devices_.begin(), devices_.end(), list[i]->impl->device);
      if ((at == devices_.end() ? 0 : static_cast<std::size_t>(at - devices_.begin())) != d)
        continue;
      try {
        f(*list[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void Engine::find(const Ref<Node>& root) {
  const auto visit = [this](const Ref<Node>& node) {
    if (node->task_ == this) return;
    if (node->task_)
      throw AutogradError(
          str("backward: expected a graph that no other backward is using, got one in use (at ",
              node->name(), ")"));
    if (node->released()) detail::already_freed(node->name());
    node->task_ = this;
    any_prioritized_ = any_prioritized_ || node->prioritized();
    found_.push_back(node);
  };
  std::size_t next = found_.size();
  visit(root);
  for (; next < found_.size(); ++next) {
    Node* const node = found_[next].get();
    for (const Edge& e : node->edges())
      if (e.node) visit(e.node);
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
      if (e.node && e.node->prioritized()) places[e.node->mark_] = {i, e.node->mark_, true};
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
      if (e.node) {
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
      if (impl->grad_fn->task_ == this)
        watched_.push_back(
            {impl->grad_fn->mark_, tasks_[impl->grad_fn->mark_].first_slot + impl->output_nr, i});
    } else {
      captures_[i] = leaf_slot(impl);
    }
  }
}

void Engine::seed(const Tensor& root, Tensor gradient) {
  TensorImpl* const impl = root.id();
  const std::uint32_t slot =
      impl->grad_fn ? tasks_[impl->grad_fn->mark_].first_slot + impl->output_nr : leaf_slot(impl);
  if (impl->grad_fn) ++tasks_[impl->grad_fn->mark_].contributions;
  if (seed_factor_ != 1) gradient = gradient * seed_factor_;
  contribute(slot, 0, std::move(gradient), false);
}

void Engine::contribute(std::uint32_t index, std::uint32_t order, Tensor gradient,
                        bool concurrent) {
  if (!gradient.defined()) return;
  Slot& slot = slots_[index];
  if (!concurrent) {
    slot.first = slot.first.defined() ? joined(std::move(slot.first), gradient, create_)
                                      : std::move(gradient);
    return;
  }
  const std::lock_guard lock(slot_mutexes_[index % std::size(slot_mutexes_)]);
  if (!slot.first.defined()) {
    slot.first = std::move(gradient);
    slot.order = order;
  } else {
    slot.more.emplace_back(order, std::move(gradient));
  }
}

Tensor Engine::take(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (!slot.more.empty()) {
    // at the front: the stable sort keeps the order of several parts of one node
    slot.more.emplace(slot.more.begin(), slot.order, std::move(slot.first));
    std::stable_sort(slot.more.begin(), slot.more.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Tensor sum = std::move(slot.more.front().second);
    for (std::size_t i = 1; i < slot.more.size(); ++i)
      sum = joined(std::move(sum), slot.more[i].second, create_);
    slot.more.clear();
    return sum;
  }
  return std::move(slot.first);
}

void Engine::execute(std::uint32_t index) {
  try {
    run_node(index);
  } catch (...) {
    rethrow_with_origin(*tasks_[index].node);
  }
}

void Engine::rethrow_with_origin(const Node& node) {
  if (node.origin() != nullptr) node.origin()->rethrow(node);
  throw;
}

void Engine::run_node(std::uint32_t index) {
  const Task& task = tasks_[index];
  Node& node = *task.node;
  const std::uint32_t outputs = node.outputs();
  Tensor one;
  std::vector<Tensor> many;
  if (outputs > 1) many.resize(outputs);
  const std::span<Tensor> gradients =
      outputs > 1 ? std::span<Tensor>(many) : std::span<Tensor>(&one, 1);
  bool any = false;
  for (std::uint32_t o = 0; o < outputs; ++o) {
    gradients[o] = take(task.first_slot + o);
    any = any || gradients[o].defined();
    if (node.hooked() && gradients[o].defined())
      gradients[o] = detail::run_hooks(&node, o, std::move(gradients[o]));
  }
  for (const Watched& w : watched_)
    if (w.task == index) captured_now_[w.capture] = gradients[w.slot - task.first_slot];
  if (any) {
    const detail::RunningNode running(&node);
    Grads results = node.backward(gradients);
    const std::span<Edge> edges = node.edges();
    if (results.size() != edges.size())
      throw InternalError(str("backward of ", node.name(), ": expected ", edges.size(),
                              " gradients, got ", results.size()));
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const Target target = targets_[task.first_target + i];
      if (target.slot != Target::kNone)
        contribute(target.slot, index, std::move(results[i]),
                   missing_ != nullptr || any_prioritized_);
    }
  }
  if (edges_to_come_) contributed(index);
  if (!retain_) node.forget();
}

void Engine::run_on_all() {
  std::vector<std::vector<std::uint32_t>> mine(devices_.size());
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    const auto at = std::find(devices_.begin(), devices_.end(), tasks_[i].node->device());
    mine[static_cast<std::size_t>(at - devices_.begin())].push_back(i);
  }
  std::atomic<bool> failed{false};
  std::mutex error_mutex;
  std::exception_ptr error;
  std::uint32_t error_index = ~0u;
  run_on_devices(devices_, [&](std::size_t d) {
    const GradMode mode(create_);
    const Inside inside(this);
    trace::WorkSpan span("backward", trace::Phase::compute, devices_[d]);
    for (const std::uint32_t i : mine[d]) {
      if (span.open() && missing_[i].load(std::memory_order_relaxed) != 0) span.pause();
      wait_for(i);
      span.resume();
      if (!failed.load(std::memory_order_acquire)) {
        try {
          execute(i);
        } catch (...) {
          // the other threads skip their remaining nodes, so that all of them finish
          const std::lock_guard lock(error_mutex);
          if (i < error_index) error_index = i, error = std::current_exception();
          failed.store(true, std::memory_order_release);
        }
      }
      span.mark();  // before done(), so that the spans of waiting nodes begin later
      done(i);
    }
  });
  if (error) std::rethrow_exception(error);
}

void Engine::wait_for(std::uint32_t index) const noexcept {
  constexpr int kSpins = 10000;
  const std::atomic<std::uint32_t>& missing = missing_[index];
  for (int i = 0; i < kSpins; ++i) {
    if (missing.load(std::memory_order_acquire) == 0) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (std::uint32_t n = missing.load(std::memory_order_acquire); n != 0;
       n = missing.load(std::memory_order_acquire))
    missing.wait(n, std::memory_order_acquire);
}

void Engine::done(std::uint32_t index) noexcept {
  const Task& task = tasks_[index];
  const std::size_t edges = task.node->edges().size();
  for (std::size_t i = 0; i < edges; ++i) {
    const std::uint32_t target = targets_[task.first_target + i].task;
    if (target == Target::kNone) continue;
    missing_[target].fetch_sub(1, std::memory_order_acq_rel);
    missing_[target].notify_one();
  }
}

void at_end_of_backward(std::function<void()> join) {
  if (Node* const node = detail::running_node()) Engine::of(*node).add_join(std::move(join));
  else join();
}

}  // namespace braid
