// The gradients of leaves at the end of a backward. Those of a leaf with a GradientSink leave it
// earlier, as soon as they are complete.
#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "backward_engine.hpp"
#include "hooks.hpp"
#include "ops/common.hpp"

namespace braid {

using autograd::Engine;
using detail::Leaf;
using detail::Target;

/// Finds the sinks of the leaves, tells each that a backward begins, and counts the edges to their
/// leaves.
void Engine::open_sinks() {
  for (Leaf& l : leaves_) {
    if (!l.impl->hooked) continue;
    const detail::SinkOf of = detail::sink_of(l.impl);
    std::shared_ptr<GradientSink> sink = of.sink.lock();
    if (!sink) continue;
    l.sink = sink.get();
    l.number = of.number;
    if (std::find(sinks_.begin(), sinks_.end(), sink) == sinks_.end())
      sinks_.push_back(std::move(sink));
  }
  if (sinks_.empty()) return;
  detail::StepCapture::refuse(
      "backward", "a captured step without gradients that several processes sum, got one with");
  std::vector<std::shared_ptr<GradientSink>> reached;
  reached.swap(sinks_);
  try {
    for (const std::shared_ptr<GradientSink>& sink : reached) {
      std::vector<std::size_t> numbers;
      for (const Leaf& l : leaves_)
        if (l.sink == sink.get()) numbers.push_back(l.number);
      if (!sink->begin(numbers)) {
        for (Leaf& l : leaves_)
          if (l.sink == sink.get()) l.sink = nullptr;
        continue;
      }
      sinks_.push_back(sink);
      const double factor = sink->seed_factor();
      if (sinks_.size() > 1 && factor != seed_factor_)
        throw AutogradError(
            str("backward: expected sinks with the same factor of the gradients, got ",
                seed_factor_, " and ", factor));
      seed_factor_ = factor;
    }
  } catch (...) {
    fail_sinks();
    throw;
  }
  if (sinks_.empty()) return;
  edges_to_come_ = std::make_unique<std::atomic<std::uint32_t>[]>(leaves_.size());
  for (const Target& t : targets_)
    if (t.task == Target::kNone && t.slot != Target::kNone)
      edges_to_come_[t.slot - first_leaf_slot_].fetch_add(1, std::memory_order_relaxed);
}

/// Passes the gradients of leaves that no node contributes to: roots.
void Engine::feed_sinks() {
  if (!edges_to_come_) return;
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (leaves_[i].sink && edges_to_come_[i].load(std::memory_order_relaxed) == 0)
      pass_to_sink(leaves_[i]);
}

/// The node has run: passes on the gradients that are complete now.
void Engine::contributed(std::uint32_t index) {
  const detail::Task& task = tasks_[index];
  const std::size_t edges = task.node->edges().size();
  for (std::size_t i = 0; i < edges; ++i) {
    const Target target = targets_[task.first_target + i];
    if (target.task != Target::kNone || target.slot == Target::kNone) continue;
    const std::uint32_t leaf = target.slot - first_leaf_slot_;
    if (edges_to_come_[leaf].fetch_sub(1, std::memory_order_acq_rel) == 1 && leaves_[leaf].sink)
      pass_to_sink(leaves_[leaf]);
  }
}

void Engine::pass_to_sink(Leaf& leaf) {
  Tensor gradient = take(leaf.slot);
  if (gradient.defined()) {
    gradient = detail::run_hooks(leaf.impl, 0, std::move(gradient));
    check_gradient(*leaf.impl, gradient);
  }
  leaf.sink->receive(leaf.number, std::move(gradient));
}

void Engine::finish_sinks() {
  while (finished_ < sinks_.size()) {
    GradientSink& sink = *sinks_[finished_];
    try {
      sink.finish();
    } catch (...) {
      failed_ = &sink;  // one that throws is not told that it has failed
      throw;
    }
    ++finished_;
  }
}

void Engine::fail_sinks() noexcept {
  const std::exception_ptr error = std::current_exception();
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    if (i < finished_) sinks_[i]->abandon();
    else if (sinks_[i].get() != failed_) sinks_[i]->fail(error);
  }
  sinks_.clear();
}

void Engine::check_gradient(const TensorImpl& leaf, const Tensor& value) {
  if (value.shape() != leaf.shape || value.dtype() != leaf.dtype || value.device() != leaf.device)
    throw AutogradError(str("backward: expected a gradient of shape ", leaf.shape, ", ", leaf.dtype,
                            " on ", leaf.device, ", got ", value.shape(), ", ", value.dtype(),
                            " on ", value.device()));
}

/// Computes the gradients of this backward.
void Engine::take_values() {
  for (Leaf& l : leaves_) {
    Tensor value = take(l.slot);
    if (!value.defined() || !l.impl->requires_grad) continue;  // it may be frozen after forward
    check_gradient(*l.impl, value);
    l.value = seed_factor_ == 1 ? std::move(value) : value / seed_factor_;
  }
}

/// Prepares the values for grad(), and changes nothing.
void Engine::prepare_values() {
  for (Leaf& l : leaves_) {
    if (!l.value.defined()) continue;
    Tensor value = std::move(l.value);
    const TensorImpl& leaf = *l.impl;
    if (leaf.grad && leaf.grad->shape != leaf.shape)  // the leaf was changed under NoGrad
      throw AutogradError(str("backward: expected a leaf whose gradient has its shape ", leaf.shape,
                              ", got one of shape ", leaf.grad->shape));
    if (!leaf.grad) {
      // the gradient must not share memory with another tensor
      if (!detail::sole_owner(value)) value = value.clone();
    } else if (const Tensor old(leaf.grad); create_ || old.requires_grad() ||
                                            !ops::has_own_elements(*leaf.grad) ||
                                            old.storage() == value.storage()) {
      value = add(old, value);
    } else {
      l.in_place = true;
    }
    l.value = std::move(value);
  }
}

}  // namespace braid
