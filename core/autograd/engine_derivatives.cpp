// The part of the engine that leaves the derivative of an activation to the product before it.
#include <braid/core/error.hpp>

#include "backward_engine.hpp"
#include "derivative.hpp"
#include "engine.hpp"

namespace braid::autograd {

bool Engine::derivative_of_input(const Node& node, std::uint32_t i, Derivative& to) const {
  const std::uint32_t index = targets_[tasks_[node.mark_].first_target + i].task;
  if (create_ || index == detail::Target::kNone) return false;
  const detail::Task& task = tasks_[index];
  // who sees the gradient: other contributions to it, hooks, callers of grad(). Nodes of another
  // device run on another thread.
  if (task.contributions != 1 || task.node->hooked() || task.node->device() != node.device())
    return false;
  for (const Watched& w : watched_)
    if (w.task == index) return false;
  try {
    const detail::RunningNode running(task.node);
    return task.node->derivative(to);
  } catch (const AutogradError&) {
    return false;  // that node's backward throws it again, with its own name
  }
}

void Engine::derivative_was_applied(const Node& node, std::uint32_t i) noexcept {
  tasks_[targets_[tasks_[node.mark_].first_target + i].task].has_derivative = true;
}

bool Engine::has_derivative(const Node& node) const noexcept {
  return tasks_[node.mark_].has_derivative;
}

bool derivative_of_input(std::uint32_t i, Derivative& to) {
  const Node* const node = detail::running_node();
  return node != nullptr && Engine::of(*node).derivative_of_input(*node, i, to);
}
void derivative_was_applied(std::uint32_t i) noexcept {
  const Node* const node = detail::running_node();
  Engine::of(*node).derivative_was_applied(*node, i);
}
bool has_derivative() noexcept {
  const Node* const node = detail::running_node();
  return node != nullptr && Engine::of(*node).has_derivative(*node);
}

}  // namespace braid::autograd
