#include <algorithm>
#include <chrono>

#include "simt/runtime/streams.hpp"

namespace braid::simt::detail {
namespace {

// The number of operations that are kept for describe_op and happens_before. Beyond it, the oldest
// completed operations count as ordered with everything.
constexpr std::size_t kKeptOps = std::size_t{1} << 20, kPruneFrom = 4096;

}  // namespace

void Streams::add_device() {
  auto stream = std::make_shared<StreamState>();
  stream->device = static_cast<int>(legacy.size()), stream->legacy = true, stream->of_user = false;
  stream->slot = static_cast<std::uint32_t>(ticks.size());
  ticks.push_back(0);
  legacy.push_back(std::move(stream));
}

StreamPtr Streams::make(int device, unsigned flags, int priority, Location where) {
  sweep();
  auto stream = std::make_shared<StreamState>();
  stream->device = device, stream->flags = flags, stream->priority = priority,
  stream->created = where;
  if (!free_slots.empty()) {
    stream->slot = free_slots.back();
    free_slots.pop_back();
  } else {
    stream->slot = static_cast<std::uint32_t>(ticks.size());
    ticks.push_back(0);
  }
  stream->clock = host;
  return stream;
}

void Streams::sweep() {
  std::erase_if(by_number, [this](const auto& entry) {
    const StreamState& stream = *entry.second;
    if (stream.alive || !stream.queue.empty() || host.at(stream.slot) < ticks[stream.slot])
      return false;
    free_slots.push_back(stream.slot);
    keep_dead(dead_streams, stream.number, {stream.created, stream.destroyed});
    return true;
  });
}

OpPtr Streams::enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
                       std::function<void(Op&)> run, std::vector<OpPtr> needs) {
  auto op = std::make_shared<Op>();
  op->id = next_op++;
  op->kind = kind, op->call = call, op->where = where, op->device = stream.device,
  op->stream = stream.number, op->on_stream = true;
  op->run = std::move(run);
  op->slot = stream.slot;
  op->covered = covered;
  op->clock = stream.clock;
  op->clock.join(host);
  for (const OpPtr& need : needs) op->clock.join(need->clock);
  const auto join = [&](const StreamState& other) {
    op->clock.join(other.clock);
    if (other.last && !other.last->done) op->needs.push_back(other.last);
  };
  // The legacy default stream waits for all blocking streams of its device, and they wait for it.
  if (stream.legacy) {
    ++legacy_count;
    for (const auto& [number, other] : by_number)
      if (other->device == stream.device && other->blocking()) join(*other);
  } else if (stream.blocking()) {
    join(*legacy[static_cast<std::size_t>(stream.device)]);
  }
  for (OpPtr& need : needs)
    if (!need->done) op->needs.push_back(std::move(need));
  op->tick = ++ticks[stream.slot];
  op->clock.set(stream.slot, op->tick);
  stream.clock = op->clock;
  stream.last = op;
  if (stream.queue.empty())
    active.push_back(stream.legacy ? legacy[static_cast<std::size_t>(stream.device)]
                                   : by_number.at(stream.number));
  stream.queue.push_back(op);
  ++pending;
  ops.push_back(op);
  return op;
}

OpPtr Streams::host_op(const char* call, int device, Location where) {
  auto op = std::make_shared<Op>();
  op->id = next_op++;
  op->call = call, op->device = device, op->where = where;
  op->covered = covered;
  op->tick = ++ticks[0];
  host.set(0, op->tick);
  op->clock = host;
  op->done = true;
  ops.push_back(op);
  return op;
}

bool Streams::prune() {
  if (ops.size() <= kPruneFrom) return false;
  // Operations that were complete before the oldest waiting operation was queued are ordered before
  // everything that can still run.
  const Op* oldest = nullptr;
  for (const auto& busy : active)
    if (!oldest || busy->queue.front()->id < oldest->id) oldest = busy->queue.front().get();
  const std::uint32_t limit = oldest ? oldest->covered : covered;
  while (!ops.empty() && (ops.front()->id <= limit || (ops.size() > kKeptOps && ops.front()->done)))
    ops.pop_front(), ++first_op;
  return true;
}

OpPtr Streams::find_op(std::uint32_t id) const {
  return id >= first_op && id - first_op < ops.size() ? ops[id - first_op] : nullptr;
}

std::vector<StreamState*> Streams::ready() const {
  std::vector<StreamState*> list;
  for (const auto& stream : active) {
    const Op& head = *stream->queue.front();
    if (!head.running && std::all_of(head.needs.begin(), head.needs.end(),
                                     [](const OpPtr& need) { return need->done; }))
      list.push_back(stream.get());
  }
  return list;
}

void Streams::finish(Op& op, StreamState& stream) {
  op.needs.clear();
  op.body = nullptr;
  op.time = std::chrono::steady_clock::now();
  op.running = false;
  op.done = true;
  stream.queue.pop_front();
  --pending;
  if (stream.queue.empty())
    std::erase_if(active, [&](const auto& s) { return s.get() == &stream; });
}

void Streams::learn(const Clock& clock) {
  host.join(clock);
  while (covered + 1 < next_op) {
    const OpPtr op = find_op(covered + 1);
    if (op && host.at(op->slot) < op->tick) break;
    ++covered;
  }
}

void Streams::clear() {
  legacy_count = 0;
  // The host now knows everything: earlier operations are ordered before all later ones.
  for (std::uint32_t slot = 0; slot < ticks.size(); ++slot) host.set(slot, ticks[slot]);
  for (const auto& [handle, stream] : by_number) stream->alive = false;
  per_thread.clear();
  for (const auto& [handle, event] : events) keep_dead(dead_events, handle, {event->created, {}});
  events.clear();
  sweep();
  learn(host);
  ops.clear();
  first_op = next_op;
  for (const StreamPtr& stream : legacy) stream->last = nullptr;
}

}  // namespace braid::simt::detail
