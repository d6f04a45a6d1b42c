// Ranks with different numbers of batches: those without data take part in the collectives of the
// others.
#include <algorithm>

#include <braid/core/error.hpp>

#include "distributed/exchange.hpp"
#include "distributed/module_sync.hpp"
#include "distributed/state.hpp"

namespace braid::parallel::detail {
namespace {

constexpr const char* kJoin = "join";

[[noreturn]] void throw_of_early_end(const std::vector<std::vector<std::int64_t>>& announced) {
  std::string ended;
  for (std::size_t rank = 0; rank < announced.size(); ++rank)
    if (!announced[rank][0]) ended += str(ended.empty() ? "" : ", ", rank);
  throw Error(str("DistributedDataParallel: join: expected data on all ranks, got no more on rank ",
                  ended, " (throw_on_early_termination)"));
}

}  // namespace

void Distributed::State::set_active(const std::vector<std::vector<std::int64_t>>& announced) {
  std::vector<int> active;
  for (std::size_t rank = 0; rank < announced.size(); ++rank)
    if (announced[rank][0]) active.push_back(static_cast<int>(rank));
  if (active.empty()) return;
  joining->all = active.size() == announced.size();
  joining->active = std::move(active);
  reducer->set_divisor(joining->options.divide_by_initial_world_size
                           ? ranks->size()
                           : static_cast<int>(joining->active.size()));
}

int Distributed::State::announce(bool reduces) {
  const auto announced = distributed::exchange_numbers(*ranks, {1, reduces ? 1 : 0}, kJoin);
  set_active(announced);
  if (joining->options.throw_on_early_termination && !joining->all) throw_of_early_end(announced);
  return joining->active.front();
}

bool Distributed::State::follow(const tree::Flat& module) {
  const auto announced = distributed::exchange_numbers(*ranks, {0, 0}, kJoin);
  if (std::ranges::none_of(announced, [](const auto& of) { return of[0] != 0; })) return false;
  set_active(announced);
  if (joining->options.throw_on_early_termination) throw_of_early_end(announced);
  const int root = joining->active.front();
  if (announced[static_cast<std::size_t>(root)][1] == 0) return true;  // they only accumulate
  if (reducer->rebuild_due()) reducer->rebuild(root);
  if (broadcast_buffers)
    distributed::broadcast_values(*ranks, distributed::tensors_of(module, false), root, false);
  reducer->shadow();
  return true;
}

void Distributed::begin_join(const JoinOptions& options) const {
  if (state_->deterministic())
    throw ArgumentError(str("DistributedDataParallel: join: expected no virtual_replicas, got ",
                            state_->virtual_replicas,
                            ": every rank needs its rows of every batch"));
  if (!state_->refused_hook.empty())
    throw ArgumentError(
        str("DistributedDataParallel: join: expected no hook, or one of all_reduce_hook, "
            "fp16_compress and bf16_compress, got ",
            state_->refused_hook, ": a rank without data has no gradients and no state for it"));
  if (state_->joining)
    throw ArgumentError("DistributedDataParallel: join: expected no other open join, got one");
  state_->joining = State::Joining{options, {}, true};
}

void Distributed::finish_join(const tree::Flat& module) const {
  struct End {
    const Distributed& of;
    ~End() { of.leave_join(); }
  } const end{*this};
  if (state_->ranks->size() == 1) return;
  while (state_->follow(module)) {}
  if (state_->joining->active.empty()) return;  // no rank had data
  const int last = state_->joining->active.back();
  distributed::broadcast_values(*state_->ranks, state_->parameters, last, true);
  distributed::broadcast_values(*state_->ranks, distributed::tensors_of(module, false), last, true);
  state_->buffers_due = false;
}

void Distributed::leave_join() const noexcept {
  state_->joining.reset();
  state_->reducer->set_divisor(state_->ranks->size());
}

}  // namespace braid::parallel::detail
