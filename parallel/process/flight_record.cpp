#include "process/flight_record.hpp"

#include <chrono>
#include <mutex>
#include <utility>

namespace braid::parallel::process {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int FlightRecord::add_group(std::string name, std::vector<int> ranks, double timeout) {
  const std::lock_guard lock(mutex_);
  const std::string text = groups_.empty() ? "world" : "split " + name;
  groups_.push_back({{.name = std::move(name), .text = text, .ranks = std::move(ranks)},
                     static_cast<std::int64_t>(timeout * 1000),
                     {}});
  return static_cast<int>(groups_.size()) - 1;
}

std::uint64_t FlightRecord::add(int group, const std::string& engine, const Call& call) {
  if (call.kind == CallKind::function) return 0;
  const std::lock_guard lock(mutex_);
  Group& g = groups_[static_cast<std::size_t>(group)];
  if (g.group.engine.empty()) g.group.engine = engine;
  detail::FlightEntry e{.record = next_++,
                        .group = group,
                        .op = name_of(call.kind),
                        .name = call.name,
                        .dtype = call.dtype,
                        .created = now(),
                        .timeout_ms = g.timeout_ms};
  if (is_collective(call.kind)) {
    e.number = static_cast<std::int64_t>(call.number);
    g.group.queued = e.number;
    if (call.kind == CallKind::all_gather)
      e.out = {call.count * static_cast<std::int64_t>(g.group.ranks.size())};
  } else {
    e.peer = call.peer;
    e.tag = call.tag;
    e.number = ++g.messages[{call.kind == CallKind::send, call.peer, call.tag}];
  }
  if (call.kind != CallKind::barrier && call.kind != CallKind::split) e.in = call.shape;
  entries_.push_back(std::move(e));
  if (entries_.size() > kMost) entries_.pop_front();
  return static_cast<std::uint64_t>(next_);
}

detail::FlightEntry* FlightRecord::find(std::uint64_t number) noexcept {
  const std::int64_t record = static_cast<std::int64_t>(number) - 1;
  if (number == 0 || entries_.empty() || record < entries_.front().record) return nullptr;
  return &entries_[static_cast<std::size_t>(record - entries_.front().record)];
}

void FlightRecord::started(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  detail::FlightEntry* const e = find(number);
  if (e == nullptr) return;
  e->entered = now();
  e->state = detail::FlightState::started;
  if (e->peer < 0) groups_[static_cast<std::size_t>(e->group)].group.started = e->number;
}

void FlightRecord::completed(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  detail::FlightEntry* const e = find(number);
  if (e == nullptr) return;
  e->ended = now();
  e->state = detail::FlightState::completed;
  if (e->peer < 0) groups_[static_cast<std::size_t>(e->group)].group.completed = e->number;
}

detail::FlightRecord FlightRecord::snapshot(int rank, std::string reason) const {
  const std::lock_guard lock(mutex_);
  detail::FlightRecord record{.rank = rank, .reason = std::move(reason)};
  for (const Group& g : groups_) record.groups.push_back(g.group);
  record.entries.assign(entries_.begin(), entries_.end());
  return record;
}

void FlightRecord::write(const std::string& prefix, int rank, const std::string& reason) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(written_, true)) return;
    }
    detail::write_flight_record(prefix, snapshot(rank, reason));
  } catch (...) {  // as documented
  }
}

}  // namespace braid::parallel::process
