#include <exception>
#include <limits>
#include <system_error>

#include <braid/core/error.hpp>

#include "simt/runtime/state.hpp"

namespace braid::simt::detail {

thread_local bool executing = false;
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::uint64_t reports_before = 0;

namespace {

// The number of operations that are kept for describe_op and happens_before. Beyond it, the oldest
// completed operations count as ordered with everything.
constexpr std::size_t kKeptOps = std::size_t{1} << 20, kPruneFrom = 4096;

struct Executing {
  Executing() { executing = true; }
  ~Executing() { executing = false; }
};

// Runs an operation. Returns the text of what it throws, or an empty string.
std::string failure_of(const std::function<void(Op&)>& run, Op& op) {
  try {
    run(op);
    return {};
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

OpPtr Runtime::enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
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
    for (const auto& [number, other] : streams)
      if (other->device == stream.device && other->blocking()) join(*other);
  } else if (stream.blocking()) {
    join(*devices[static_cast<std::size_t>(stream.device)].legacy);
  }
  for (OpPtr& need : needs)
    if (!need->done) op->needs.push_back(std::move(need));
  op->tick = ++ticks[stream.slot];
  op->clock.set(stream.slot, op->tick);
  stream.clock = op->clock;
  stream.last = op;
  if (stream.queue.empty())
    active.push_back(stream.legacy ? devices[static_cast<std::size_t>(stream.device)].legacy
                                   : streams.at(stream.number));
  stream.queue.push_back(op);
  ++pending;
  ops.push_back(op);
  if (ops.size() > kPruneFrom) {
    // Operations that were complete before the oldest waiting operation was queued are ordered
    // before everything that can still run.
    const Op* oldest = nullptr;
    for (const auto& busy : active)
      if (!oldest || busy->queue.front()->id < oldest->id) oldest = busy->queue.front().get();
    const std::uint32_t limit = oldest ? oldest->covered : covered;
    while (!ops.empty() &&
           (ops.front()->id <= limit || (ops.size() > kKeptOps && ops.front()->done)))
      ops.pop_front(), ++first_op;
    if (reported.size() > kPruneFrom) reported.clear();
  }
  return op;
}

OpPtr Runtime::host_op(const char* call, int device, Location where) {
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

bool Runtime::run_one(Lock& lock) {
  std::vector<StreamState*> ready;
  for (const auto& stream : active) {
    const Op& head = *stream->queue.front();
    if (!head.running && std::all_of(head.needs.begin(), head.needs.end(),
                                     [](const OpPtr& need) { return need->done; }))
      ready.push_back(stream.get());
  }
  if (ready.empty()) {
    if (pending && !host_functions)
      throw InternalError("simt: operations wait for each other for ever");
    return false;
  }
  const auto by_age = [](const StreamState* a, const StreamState* b) {
    return a->queue.front()->id < b->queue.front()->id;
  };
  StreamState* stream = nullptr;
  switch (order) {
    case StreamOrder::fifo: stream = *std::min_element(ready.begin(), ready.end(), by_age); break;
    case StreamOrder::reverse:
      stream = *std::max_element(ready.begin(), ready.end(), by_age);
      break;
    case StreamOrder::random:
      std::sort(ready.begin(), ready.end(), by_age);
      stream = ready[random() % ready.size()];
      break;
  }
  const OpPtr op = stream->queue.front();
  // operations of a stream run in order, so the sequence of streams determines the whole order
  schedule = (schedule ^ op->slot) * 0x9e3779b97f4a7c15ULL;
  // a lost device runs nothing more, except operations that must always run
  const bool dead = sticky_of(op->device) != cudaSuccess && !op->always;
  std::function<void(Op&)> run = std::move(op->run);
  if (op->kind == OpKind::host_function && !dead) {
    const auto own = std::find_if(active.begin(), active.end(),
                                  [&](const auto& s) { return s.get() == stream; });
    start_host_function(op, *own, std::move(run), lock);
    return true;
  }
  lock.unlock();
  std::string failure;
  if (run && !dead) {
    const Executing scope;
    failure = failure_of(run, *op);
  }
  run = nullptr;
  lock.lock();
  if (!failure.empty()) report_op(ReportKind::kernel, *op, {}, failure, cudaErrorLaunchFailure);
  finish(*op, *stream);
  return true;
}

void Runtime::finish(Op& op, StreamState& stream) {
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

// The program may wait for the function's effects without a runtime call, and the function for the
// program's. So the function has its own thread, and everything that the function may know counts
// as known to the host from the function's start.
void Runtime::start_host_function(const OpPtr& op, const std::shared_ptr<StreamState>& stream,
                                  std::function<void(Op&)> run, Lock& lock) {
  op->running = true;
  ++host_functions;
  learn(op->clock);
  const auto work = [this, op, stream, run = std::move(run)] {
    std::string failure;
    {
      const Executing scope;
      failure = failure_of(run, *op);
    }
    const Lock done(mutex);
    if (!failure.empty()) report_op(ReportKind::kernel, *op, {}, failure, cudaErrorLaunchFailure);
    finish(*op, *stream);
    --host_functions;
    finished.notify_all();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {  // no more threads
    lock.unlock();
    work();
    lock.lock();
  }
}

void Runtime::run_until(const std::function<bool()>& pred) {
  constexpr std::chrono::milliseconds kAgain{20};
  {
    const Lock lock(mutex);
    if (pred()) return;
  }
  for (;;) {
    {
      const Lock runs(baton);
      Lock lock(mutex);
      while (!pred() && run_one(lock)) {}
      if (pred() || !host_functions) return;
    }
    // The remaining operations wait for a host function. Other threads may meanwhile run what they
    // wait for.
    Lock lock(mutex);
    if (!pred() && host_functions) finished.wait_for(lock, kAgain);
  }
}

void Runtime::run_all() {
  run_until([this] { return pending == 0; });
}

void Runtime::run_some() {
  const Lock runs(baton, std::try_to_lock);
  if (!runs.owns_lock()) return;  // another thread runs operations
  Lock lock(mutex);
  run_one(lock);
}

void Runtime::settle() {
  std::size_t limit = 0;
  {
    const Lock lock(mutex);
    if (pending <= queue_limit) return;
    limit = queue_limit / 2;
  }
  run_until([this, limit] { return pending <= limit; });
}

void Runtime::learn(const Clock& clock) {
  host.join(clock);
  while (covered + 1 < next_op) {
    const OpPtr op = find_op(covered + 1);
    if (op && host.at(op->slot) < op->tick) break;
    ++covered;
  }
  host_learned();
}

OpPtr Runtime::find_op(std::uint32_t id) const {
  return id >= first_op && id - first_op < ops.size() ? ops[id - first_op] : nullptr;
}

void Runtime::synchronize_device(int device) {
  std::vector<OpPtr> lasts;
  Clock clock;
  {
    const Lock lock(mutex);
    const auto add = [&](const StreamState& stream) {
      if (stream.device != device) return;
      clock.join(stream.clock);
      if (stream.last && !stream.last->done) lasts.push_back(stream.last);
    };
    add(*devices[static_cast<std::size_t>(device)].legacy);
    for (const auto& [number, stream] : streams) add(*stream);
  }
  run_until([&] {
    return std::all_of(lasts.begin(), lasts.end(), [](const OpPtr& op) { return op->done; });
  });
  const Lock lock(mutex);
  learn(clock);
}

// Called by the checker of kernels (device_memory.hpp).
bool happens_before(std::uint32_t earlier, std::uint32_t later) {
  if (earlier == 0 || later == 0 || earlier == later) return true;
  Runtime& r = runtime();
  const Runtime::Lock lock(r.mutex);
  const OpPtr a = r.find_op(earlier), b = r.find_op(later);
  return !a || !b || ordered(*a, *b) || r.reported.contains({earlier, later});
}

std::string describe_op(std::uint32_t id) {
  if (id == 0) return "the host";
  Runtime& r = runtime();
  const Runtime::Lock lock(r.mutex);
  const OpPtr op = r.find_op(id);
  return op ? describe(*op) : "an operation that is long over";
}

}  // namespace braid::simt::detail
