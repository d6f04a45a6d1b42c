#include "simt/nccl/faults.hpp"

#include <mutex>
#include <utility>

#include "simt/nccl/comm.hpp"

namespace braid::simt::nccl {
namespace {

struct State {
  std::mutex mutex;
  std::condition_variable released;
  std::uint64_t calls = 0, k = 0, seen = 0, releases = 0;
  Fault fault = Fault::none;
  bool reached = false;  // the faulty call was made
  bool shown = false, abort_hangs = false;
  Sum sum = Sum::ring;
  int version = 22809;
  std::vector<std::string> misuses;
};

// Never destroyed: threads may hang in it when the process ends.
State& state() {
  static State& the_one = *new State;
  return the_one;
}

/// The state, locked during the lifetime of this object.
struct Locked {
  State& s = state();
  const std::lock_guard<std::mutex> lock{s.mutex};

  State* operator->() const { return &s; }
};

void hang(State& s, std::unique_lock<std::mutex>& lock) {
  const std::uint64_t before = s.releases;
  s.released.wait(lock, [&] { return s.releases != before; });
}

bool holds(Fault fault) {
  const Locked s;
  if (s->fault != fault || !s->reached) return false;
  return s->shown = true;
}

}  // namespace

Entry::Entry(ncclComm* comm) : comm_(comm) {
  if (comm_ != nullptr && comm_->users.fetch_add(1) != 0)
    misuse("a communicator was used by two threads at a time");
  State& s = state();
  std::unique_lock lock(s.mutex);
  ++s.calls;
  if (s.k == 0 || ++s.seen != s.k) return;
  s.reached = true;
  const Fault fault = s.fault;
  if (fault != Fault::error && fault != Fault::hang && fault != Fault::late) return;
  s.shown = true;
  if (fault != Fault::late) result_ = kInternalError;
  if (fault != Fault::error) hang(s, lock);
}

Entry::~Entry() {
  if (comm_ != nullptr) comm_->users.fetch_sub(1);
}

bool answers_in_progress() { return holds(Fault::in_progress); }
bool answers_remote_error() { return holds(Fault::asynchronous); }

bool take_stall() {
  const Locked s;
  if (s->fault != Fault::stall || !s->reached || s->shown) return false;
  return s->shown = true;
}

void hang_after_abort() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (s.abort_hangs) hang(s, lock);
}

void misuse(const std::string& text) { Locked()->misuses.push_back(text); }

Sum sum_order() { return Locked()->sum; }

int version() { return Locked()->version; }

void fail_call(std::uint64_t k, Fault fault) {
  const Locked s;
  s->k = k, s->fault = k == 0 ? Fault::none : fault, s->seen = 0, s->reached = s->shown = false;
}

bool failed() { return Locked()->shown; }

void set_abort_hangs(bool hangs) { Locked()->abort_hangs = hangs; }

void release() {
  const Locked s;
  ++s->releases;
  s->released.notify_all();
}

std::uint64_t calls() { return Locked()->calls; }

void set_sum(Sum order) { Locked()->sum = order; }

void set_version(int version) { Locked()->version = version; }

std::vector<std::string> take_misuses() { return std::exchange(Locked()->misuses, {}); }

}  // namespace braid::simt::nccl
