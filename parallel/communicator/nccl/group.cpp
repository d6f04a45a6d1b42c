#include "communicator/nccl/group.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/internal/native_device.hpp>

#include "communicator/deferred_wait.hpp"

namespace braid::parallel::nccl {
namespace {

constexpr const char* kMake = "make_nccl_communicator";

/// The wait between two polls: first only yields, then sleeps for increasing times.
class Patience {
 public:
  void rest() {
    ++asked_;
    if (asked_ < 200) std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min(
          std::chrono::microseconds(20) * static_cast<int>(std::min(asked_ - 199, 50u)), kLongest));
  }

 private:
  static constexpr std::chrono::microseconds kLongest{1000};
  unsigned asked_ = 0;
};

// The interval at which the library is polled for errors, and the minimum time it gets to answer.
constexpr std::chrono::milliseconds kAsk{5};
constexpr const char* kNoReturn = "no return of the library";

std::string seconds(std::chrono::milliseconds time) {
  return str(static_cast<double>(time.count()) / 1000, " s");
}

Comm load(Comm& comm) { return std::atomic_ref<Comm>(comm).load(); }
Comm take(Comm& comm) { return std::atomic_ref<Comm>(comm).exchange(nullptr); }

/// NCCL allows one rank per GPU. NVIDIA's environment variable allows more in newer versions.
void check_gpus(std::span<const Device> devices, int version) {
  std::map<int, Device> of;
  for (const Device device : devices) {
    const auto [first, fresh] = of.emplace(native_device(device)->gpu(), device);
    if (fresh) continue;
    const char* const allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (version >= kManyRanksOnAGpu && allowed != nullptr && std::string_view(allowed) == "1")
      return;
    throw DeviceError(str(kMake, ": expected a GPU of its own for each device, got ", first->second,
                          " and ", device, " on GPU ", first->first, " with NCCL ",
                          version_text(version),
                          " (2.30 and newer may share one under NCCL_MULTI_RANK_GPU_ENABLE=1)"));
  }
}

}  // namespace

Group::Group(std::vector<Device> devices, std::chrono::milliseconds timeout)
    : shared_(std::make_shared<Shared>()), timeout_(timeout) {
  remote_.size = static_cast<int>(devices.size());
  shared_->devices = std::move(devices);
  start(Clock::now() + timeout_);
}

Group::Group(Device device, Remote remote, std::chrono::milliseconds timeout)
    : shared_(std::make_shared<Shared>()), timeout_(timeout), remote_(std::move(remote)) {
  shared_->devices = {device};
  shared_->elsewhere = true;
  start(remote_.deadline);
}

void Group::start(Clock::time_point deadline) {
  shared_->nccl = library_functions();
  shared_->comms.resize(devices().size());
  shared_->made.resize(devices().size());
  shared_->id = remote_.id;
  shared_->first = remote_.rank;
  shared_->total = remote_.size;
  try {
    initialise(deadline);
  } catch (const DeviceError&) {  // refused before anything was started
    throw;
  } catch (...) {
    fail_as(maker());
  }
}

const char* Group::maker() const { return shared_->elsewhere ? "NCCL" : kMake; }

Group::~Group() { close(); }

std::string Group::names() const {
  std::string text;
  for (const Device device : devices()) text += str(text.empty() ? "" : ", ", device);
  return text;
}

void Group::note(Shared& shared, Answer& answer, const char* function, Result result, Comm comm) {
  if (result == kInProgress) answer.in_progress = true;
  if (result == kSuccess || result == kInProgress || answer.function != nullptr) return;
  answer.function = function;
  answer.result = result;
  if (shared.given_up) return;
  if (const char* const text = shared.nccl.get_last_error(comm); text != nullptr)
    answer.detail = text;
}

// A group that was started must be ended in any case, or the thread's next calls would wait
// forever. Only a thread whose communicators were taken from it leaves the group open, because it
// makes no further calls.
template <class Body> void Group::in_group(Shared& shared, Answer& answer, const Body& body) {
  if (shared.given_up) return;
  const Result opened = shared.nccl.group_start();
  note(shared, answer, "ncclGroupStart", opened, nullptr);
  if (opened != kSuccess) return;
  try {
    for (std::size_t i = 0; answer.function == nullptr && !shared.taken && body(i); ++i) {}
  } catch (...) {
    answer.error = std::current_exception();
  }
  if (!shared.taken) note(shared, answer, "ncclGroupEnd", shared.nccl.group_end(), nullptr);
}

/// Stores the communicator that the library has made for the rank. If the group's communicators
/// were taken meanwhile, nobody else aborts this one. It is aborted from a separate thread, because
/// this thread has an NCCL group open, and an abort would wait for the end of that group.
void Group::publish(Shared& shared, std::size_t rank) {
  std::atomic_ref<Comm>(shared.comms[rank]).store(load(shared.made[rank]));
  if (shared.taken) std::thread([late = shared.shared_from_this()] { abort_all(*late); }).detach();
}

void Group::abort_all(Shared& shared) {
  for (Comm& slot : shared.comms)
    if (const Comm comm = take(slot); comm != nullptr) (void)shared.nccl.comm_abort(comm);
}

void Group::poll(Shared& shared, Answer& answer) {
  for (Comm& slot : shared.comms) {
    const Comm comm = load(slot);
    if (comm == nullptr || shared.given_up) continue;
    Result state = kSuccess;
    note(shared, answer, "ncclCommGetAsyncError", shared.nccl.comm_get_async_error(comm, &state),
         comm);
    note(shared, answer, "the library", state, comm);
  }
}

// Most work starts within microseconds, so the program's thread need not submit another poll.
void Group::poll_briefly(Shared& shared, Answer& answer) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(1);
  while (answer.in_progress && answer.function == nullptr && !answer.error && !shared.given_up &&
         Clock::now() < end) {
    answer.in_progress = false;
    poll(shared, answer);
    std::this_thread::yield();
  }
}

Group::Answer Group::ask(const char* op, Clock::time_point deadline, Work work) {
  const auto answer = std::make_shared<Answer>();
  stage_ = kNoReturn;
  const Ended ended = submit(
      [shared = shared_, answer, work = std::move(work)] {
        try {
          const std::lock_guard lock(shared->working);
          if (!shared->given_up) work(*shared, *answer);
        } catch (...) {
          answer->error = std::current_exception();
        }
        // This thread must not continue with others' work.
        while (shared->taken && !shared->left)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      deadline, [this] { return stopped(); });
  if (ended != Ended::yes) shared_->given_up = shared_->left = true;
  if (ended == Ended::late) throw Late();
  if (ended == Ended::stopped || stopped()) throw Stopped();
  if (answer->error) std::rethrow_exception(answer->error);
  if (answer->function != nullptr)
    throw CommError(str(op, ": expected ncclSuccess from ", answer->function, " on ", names(),
                        ", got ", name_of(answer->result), " (", answer->result, ")",
                        answer->detail.empty() ? "" : ": ", answer->detail));
  return *answer;
}

// A non-blocking communicator may still be busy after a call has returned. Until it is ready, its
// stream may not yet contain the work.
void Group::await_ready(const char* op, Clock::time_point deadline) {
  for (Patience patience; ask(op, deadline, poll).in_progress; patience.rest()) {
    rest();
    if (deadline - Clock::now() < kAsk) {
      stage_ = "ncclInProgress";
      throw Late();
    }
  }
}

void Group::await_streams(const char* op, Clock::time_point deadline) {
  for (std::size_t rank = 0; rank < devices().size(); ++rank)
    shared_->streams[rank]->record(*ends_[rank]);
  Clock::time_point next = Clock::now() + kAsk;
  std::size_t ended = 0;  // ranks, counted from the first
  for (Patience patience;; patience.rest()) {
    while (ended < devices().size() && ends_[ended]->done()) ++ended;
    if (ended == devices().size()) break;
    if (stopped()) throw Stopped();
    rest();
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      stage_ = "no end on ";
      for (std::size_t rank = ended, listed = 0; rank < devices().size(); ++rank)
        if (!ends_[rank]->done()) stage_ += str(listed++ ? ", " : "", devices()[rank]);
      throw Late();
    }
    // With too little time left, a late answer would say nothing about the library.
    if (now < next || deadline - now < kAsk) continue;
    (void)ask(op, deadline, poll);
    next = Clock::now() + kAsk;
  }
  (void)ask(op, deadline, poll);  // a stream also completes if the library gave up
}

void Group::initialise(Clock::time_point deadline) {
  version_ = ask(maker(), deadline, [](Shared& s, Answer& answer) {
               note(s, answer, "ncclGetVersion", s.nccl.get_version(&answer.version), nullptr);
             }).version;
  if (version_ < kOldest)
    throw DeviceError(str(maker(), ": expected NCCL ", version_text(kOldest), " or newer, got ",
                          version_text(version_)));
  check_gpus(devices(), version_);
  for (const Device device : devices()) {
    shared_->streams.push_back(make_stream(device));
    ends_.push_back(make_event(device));
  }
  (void)ask(maker(), deadline, [](Shared& s, Answer& answer) {
    if (!s.elsewhere) note(s, answer, "ncclGetUniqueId", s.nccl.get_unique_id(&s.id), nullptr);
    if (answer.function != nullptr) return;
    Config config;
    config.blocking = 0;
    in_group(s, answer, [&](std::size_t rank) {
      if (rank == s.devices.size()) return false;
      native_device(s.devices[rank])->make_current();
      const Result made = s.nccl.comm_init_rank_config(&s.made[rank], s.total, s.id,
                                                       s.first + static_cast<int>(rank), &config);
      publish(s, rank);
      note(s, answer, "ncclCommInitRankConfig", made, nullptr);
      return true;
    });
    poll_briefly(s, answer);
  });
  await_ready(maker(), deadline);
}

void Group::run(const char* op, std::vector<Call> calls) {
  const std::lock_guard lock(mutex_);
  require_working(op);
  for (std::size_t rank = 0; rank < devices().size(); ++rank)
    shared_->streams[rank]->wait_for(current_stream(devices()[rank]));
  if (!DeferredWait::active()) return run_locked(Clock::now() + timeout_, op, std::move(calls));
  try {
    queue(Clock::now() + timeout_, op, std::move(calls));
    queued_ = op;
    for (std::size_t rank = 0; rank < devices().size(); ++rank)
      current_stream(devices()[rank]).wait_for(*shared_->streams[rank]);
  } catch (...) {
    fail_as(op);
  }
}

// The streams run in order, so the end of the latest call is the end of all.
void Group::wait() {
  const std::lock_guard lock(mutex_);
  if (queued_ == nullptr) return;
  const char* const op = std::exchange(queued_, nullptr);
  require_working(op);
  try {
    finish(Clock::now() + timeout_, op);
  } catch (...) {
    fail_as(op);
  }
}

void Group::run_until(Clock::time_point deadline, const char* op, std::vector<Call> calls) {
  const std::lock_guard lock(mutex_);
  require_working(op);
  run_locked(deadline, op, std::move(calls));
}

void Group::run_locked(Clock::time_point deadline, const char* op, std::vector<Call> calls) {
  try {
    queue(deadline, op, std::move(calls));
    finish(deadline, op);
    queued_ = nullptr;
  } catch (...) {
    fail_as(op);
  }
}

void Group::finish(Clock::time_point deadline, const char* op) {
  await_streams(op, deadline);
  if (stopped()) throw Stopped();
}

void Group::queue(Clock::time_point deadline, const char* op, std::vector<Call> calls) {
  ++sequence_;
  const Answer begun = ask(op, deadline, [calls = std::move(calls)](Shared& s, Answer& answer) {
    in_group(s, answer, [&](std::size_t i) {
      if (i == calls.size()) return false;
      const Call& c = calls[i];
      const Comm comm = load(s.comms[c.rank]);
      const auto stream = static_cast<nccl::Stream>(s.streams[c.rank]->native());
      if (comm == nullptr) return false;  // aborted meanwhile
      const Functions& f = s.nccl;
      const auto made = [&](const char* function, Result result) {
        note(s, answer, function, result, comm);
      };
      using Kind = Call::Kind;
      if (c.kind == Kind::broadcast)
        made("ncclBroadcast", f.broadcast(c.send, c.recv, c.count, c.type, c.peer, comm, stream));
      else if (c.kind == Kind::reduce)
        made("ncclReduce", f.reduce(c.send, c.recv, c.count, c.type, c.op, c.peer, comm, stream));
      else if (c.kind == Kind::all_reduce)
        made("ncclAllReduce", f.all_reduce(c.send, c.recv, c.count, c.type, c.op, comm, stream));
      else if (c.kind == Kind::all_gather)
        made("ncclAllGather", f.all_gather(c.send, c.recv, c.count, c.type, comm, stream));
      else if (c.kind == Kind::reduce_scatter)
        made("ncclReduceScatter",
             f.reduce_scatter(c.send, c.recv, c.count, c.type, c.op, comm, stream));
      else if (c.kind == Kind::send)
        made("ncclSend", f.send(c.send, c.count, c.type, c.peer, comm, stream));
      else made("ncclRecv", f.recv(c.recv, c.count, c.type, c.peer, comm, stream));
      return true;
    });
    poll_briefly(s, answer);
  });
  if (begun.in_progress) await_ready(op, deadline);
}

UniqueId Group::make_id(Clock::time_point deadline, const std::function<bool()>& stopped) {
  struct Made {
    UniqueId id{};
    Result result = kSuccess;
  };
  const auto made = std::make_shared<Made>();
  const Functions& functions = library_functions();
  const Ended ended = submit(
      [made, &functions] { made->result = functions.get_unique_id(&made->id); }, deadline, stopped);
  if (ended == Ended::stopped)
    throw CommAbortedError("ncclGetUniqueId: expected a return, got an abort");
  if (ended == Ended::late)
    throw CommTimeoutError("ncclGetUniqueId: expected a return before the deadline, got none");
  if (made->result != kSuccess)
    throw CommError(str("expected ncclSuccess from ncclGetUniqueId, got ", name_of(made->result),
                        " (", made->result, ")"));
  return made->id;
}

void Group::check() {
  require_working("check");
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // the thread that uses it polls all the time
  try {
    (void)ask("check", Clock::now() + timeout_, poll);
  } catch (...) {
    fail_as("check");
  }
}

void Group::require_working(const char* op) const {
  const std::lock_guard lock(state_mutex_);
  if (stop_)
    throw CommAbortedError(
        str(op, ": expected a communicator that works, got one that was aborted, over ", names()));
  if (!failure_.empty())
    throw CommError(
        str(op, ": expected a communicator that works, got one that failed before: ", failure_));
}

/// Rethrows the current exception as the documented one.
void Group::fail_as(const char* op) {
  const std::string where = str(sequence_ == 0 ? " (" : str(" (collective ", sequence_, " of "),
                                "NCCL over ", names(), ")");
  try {
    throw;
  } catch (const Late&) {
    fail(op, std::make_exception_ptr(CommTimeoutError(str(
                 op, ": expected an end within ", seconds(timeout_), ", got ", stage_, where))));
  } catch (const Stopped&) {
    fail(op, std::make_exception_ptr(
                 CommAbortedError(str(op, ": expected an end, got an abort", where))));
  } catch (const std::system_error& e) {
    fail(op, std::make_exception_ptr(
                 CommError(str(op, ": expected a thread to call NCCL, got none: ", e.what()))));
  } catch (...) {
    fail(op, std::current_exception());
  }
}

void Group::fail(const char* op, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(state_mutex_);
    if (failure_.empty()) failure_ = exception_message(error);
  }
  kill();
  drain();
  if (leaked_)
    warn(str(op, ": ncclCommAbort did not return within ", seconds(kAbortLimit),
             "; the communicators over ", names(), " are leaked"));
  std::rethrow_exception(error);
}

void Group::kill() noexcept {
  const std::lock_guard lock(kill_mutex_);
  if (killed_) return;
  killed_ = true;
  shared_->given_up = true;
  struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  try {
    const auto done = std::make_shared<Done>();
    std::thread([shared = shared_, done] {
      // Polled instead of a timed lock, which current thread sanitizers do not support.
      bool idle = shared->working.try_lock();
      for (const Clock::time_point until = Clock::now() + kWorkLimit; !idle && Clock::now() < until;
           idle = shared->working.try_lock())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (idle) shared->working.unlock();  // work that begins later sees given_up
      else shared->taken = true;
      abort_all(*shared);
      const std::lock_guard guard(done->mutex);
      done->done = true;
      done->changed.notify_all();
    }).detach();
    std::unique_lock guard(done->mutex);
    leaked_ = !done->changed.wait_for(guard, kAbortLimit, [&] { return done->done; });
  } catch (...) {  // no thread or no memory
    leaked_ = true;
  }
}

// After an abort the library must not use memory that is freed now. If its work does not end, the
// memory waits for the stream, for as long as that takes.
void Group::drain() noexcept {
  const Clock::time_point deadline = Clock::now() + kDrainLimit;
  for (const std::shared_ptr<braid::Stream>& stream : shared_->streams) {
    try {
      const std::unique_ptr<Event> event = make_event(stream->device());
      stream->record(*event);
      Patience patience;
      while (!event->done() && Clock::now() < deadline) patience.rest();
      if (!event->done()) current_stream(stream->device()).wait_for(*stream);
    } catch (...) {  // the device is lost: its next use reports it
    }
  }
}

void Group::abort() noexcept {
  stop_ = true;
  kill();
}

void Group::close() noexcept {
  {
    const std::lock_guard lock(kill_mutex_);
    if (killed_) return;
  }
  try {
    const Clock::time_point deadline =
        Clock::now() + std::min<std::chrono::milliseconds>(timeout_, kCloseLimit);
    (void)ask("close", deadline, [](Shared& s, Answer& answer) {
      for (Comm& slot : s.comms)
        if (const Comm comm = load(slot); comm != nullptr && !s.given_up)
          note(s, answer, "ncclCommFinalize", s.nccl.comm_finalize(comm), comm);
    });
    await_ready("close", deadline);
    (void)ask("close", deadline, [](Shared& s, Answer&) {
      for (Comm& slot : s.comms)
        if (const Comm comm = take(slot); comm != nullptr) (void)s.nccl.comm_destroy(comm);
    });
  } catch (...) {  // no longer used: the error does not matter
    kill();
  }
}

}  // namespace braid::parallel::nccl
