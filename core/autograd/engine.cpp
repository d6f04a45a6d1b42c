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

/// Leaked, because threads may still run while the process exits.
std::mutex& leaves_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

Tensor joined(Tensor a, const Tensor& b, bool create_graph) {
  if (!create_graph && detail::sole_owner(a) && a.shape() == b.shape() && a.dtype() == b.dtype()) {
    a.add_(b);
    return a;
  }
  return add(a, b);
}

}  // namespace

Engine::Engine(bool retain, bool create) : retain_(retain), create_(create) {}

void Engine::run(std::span<const Tensor> roots, std::span<const Tensor> captures) {
  // Below the least deep of the captured tensors there is no other one.
  std::uint64_t least_depth = captures.empty() ? 0 : ~std::uint64_t{0};
  for (const Tensor& t : captures)
    least_depth = std::min(least_depth, t.id()->grad_fn ? t.id()->grad_fn->depth() : 0);
  for (const Tensor& root : roots)
    if (root.id()->grad_fn) find(root.id()->grad_fn, least_depth);
  order();
  if (!captures.empty()) prune(captures);
  prepare();
  place_captures(captures);
  for (const Tensor& root : roots)
    if (!root.id()->grad_fn) (void)leaf_slot(root.id());
  if (captures.empty()) open_sinks();  // grad() adds to no leaf
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
  // Backwards of other threads may add to the same leaves. Sinks wait for other ranks, which may be
  // threads too: their leaves are of one thread.
  std::unique_lock adding(leaves_mutex(), std::defer_lock);
  try {
    take_values();
    if (sinks_.empty()) adding.lock();
    prepare_values();
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
  if (adding) adding.unlock();
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

void Engine::seed(const Tensor& root, Tensor gradient) {
  TensorImpl* const impl = root.id();
  if (impl->grad_fn && !owns(*impl->grad_fn)) return;  // no input of grad() is behind this root
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
  if (any && runs(index)) {
    const detail::RunningNode running(&node);
    Grads results = node.backward(gradients);
    const std::span<Edge> edges = node.edges();
    if (results.size() != edges.size())
      throw InternalError(str("backward of ", node.name(), ": expected ", edges.size(),
                              " gradients, got ", results.size()));
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const Target target = targets_[task.first_target + i];
      if (target.slot == Target::kNone) continue;
      check_result(node, i, results[i]);
      contribute(target.slot, index, std::move(results[i]),
                 missing_ != nullptr || any_prioritized_);
    }
  }
  if (edges_to_come_) contributed(index);
  if (!retain_ && runs(index)) node.forget();
}

/// Kernels read the gradient as they read the input: one of another size would be read beyond its
/// end.
void Engine::check_result(Node& node, std::size_t i, const Tensor& gradient) {
  if (!gradient.defined()) return;
  const Edge& edge = node.edges()[i];
  if (gradient.numel() == edge.numel && gradient.dtype() == edge.dtype &&
      gradient.dim() == edge.dims) [[likely]]
    return;
  throw AutogradError(str("backward of ", node.name(), ": expected as gradient ", i,
                          " a tensor of ", edge.numel, " elements in ", int{edge.dims}, " dims, ",
                          edge.dtype, ", as the input is, got one of shape ", gradient.shape(),
                          ", ", gradient.dtype()));
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
