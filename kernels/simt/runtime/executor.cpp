#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

#include <braid/core/error.hpp>

#include "simt/runtime/state.hpp"

namespace braid::simt::detail {

thread_local bool executing = false;
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::uint64_t reports_before = 0;

namespace {

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
  if (stream.capture) return stream.capture->add(stream, kind, call, where, std::move(run), needs);
  OpPtr op = streams.enqueue(stream, kind, call, where, std::move(run), std::move(needs));
  if (streams.prune()) reports.prune();
  return op;
}

bool Runtime::run_one(Lock& lock) {
  std::vector<StreamState*> ready = streams.ready();
  if (ready.empty()) {
    if (streams.pending && !streams.host_functions)
      throw InternalError("simt: operations wait for each other for ever");
    return false;
  }
  StreamState* const stream = injection.choose(ready);
  const OpPtr op = stream->queue.front();
  // a lost device runs nothing more, except operations that must always run
  const bool dead = reports.sticky_of(op->device) != cudaSuccess && !op->always;
  std::function<void(Op&)> run = std::move(op->run);
  if (op->kind == OpKind::host_function && !dead) {
    const auto own = std::find_if(streams.active.begin(), streams.active.end(),
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
  if (!failure.empty())
    reports.add_op(ReportKind::kernel, *op, {}, failure, cudaErrorLaunchFailure);
  streams.finish(*op, *stream);
  return true;
}

// The program may wait for the function's effects without a runtime call, and the function for the
// program's. So the function has its own thread, and everything that the function may know counts
// as known to the host from the function's start.
void Runtime::start_host_function(const OpPtr& op, const StreamPtr& stream,
                                  std::function<void(Op&)> run, Lock& lock) {
  op->running = true;
  ++streams.host_functions;
  learn(op->clock);
  const auto work = [this, op, stream, run = std::move(run)] {
    std::string failure;
    {
      const Executing scope;
      failure = failure_of(run, *op);
    }
    const Lock done(mutex);
    if (!failure.empty())
      reports.add_op(ReportKind::kernel, *op, {}, failure, cudaErrorLaunchFailure);
    streams.finish(*op, *stream);
    --streams.host_functions;
    streams.finished.notify_all();
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
      if (pred() || !streams.host_functions) return;
    }
    // The remaining operations wait for a host function. Other threads may meanwhile run what they
    // wait for.
    Lock lock(mutex);
    if (!pred() && streams.host_functions) streams.finished.wait_for(lock, kAgain);
  }
}

void Runtime::run_all() {
  run_until([this] { return streams.pending == 0; });
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
    if (streams.pending <= streams.queue_limit) return;
    limit = streams.queue_limit / 2;
  }
  run_until([this, limit] { return streams.pending <= limit; });
}

void Runtime::learn(const Clock& clock) {
  streams.learn(clock);
  host_learned();
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
    add(*streams.legacy[static_cast<std::size_t>(device)]);
    for (const auto& [number, stream] : streams.by_number) add(*stream);
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
  const OpPtr a = r.streams.find_op(earlier), b = r.streams.find_op(later);
  return !a || !b || ordered(*a, *b) || r.reports.reported.contains({earlier, later});
}

std::string describe_op(std::uint32_t id) {
  if (id == 0) return "the host";
  Runtime& r = runtime();
  const Runtime::Lock lock(r.mutex);
  const OpPtr op = r.streams.find_op(id);
  return op ? describe(*op) : "an operation that is long over";
}

}  // namespace braid::simt::detail
