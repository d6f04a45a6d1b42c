#include "process/monitor.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>

#include <braid/core/error.hpp>

#include "process/call.hpp"

namespace braid::parallel::process {
namespace {

// Keys and values are short texts: `progress/3` is `118 117 all_reduce(25 MiB)`, `gone` has an
// entry for a rank that has left, `3 117 l;`, and for one that has died, `2 0 d;`, `failure` is
// kind and text, `ends` is the number of ranks that end, `ends/3` is there once rank 3 does.
constexpr const char* kFailure = "failure";
constexpr const char* kGone = "gone";
constexpr const char* kEnds = "ends";

std::string progress_key(int rank) { return str("progress/", rank); }

Clock::duration interval_of(double timeout) {
  return duration_of(std::clamp(timeout / 20, 0.02, 0.5));
}

/// Reads a number and skips the space after it.
std::uint64_t number_in(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return error == std::errc() ? number : 0;
}

Progress progress_of(std::string_view text) {
  Progress p;
  p.entered = number_in(text);
  p.completed = number_in(text);
  p.call = text;
  return p;
}

struct Gone {
  int rank = 0;
  std::uint64_t entered = 0;
  bool died = false;
};

/// Reads the first entry and removes it.
Gone next_gone(std::string_view& text) {
  Gone one;
  one.rank = static_cast<int>(number_in(text));
  one.entered = number_in(text);
  one.died = !text.empty() && text.front() == 'd';
  text.remove_prefix(std::min(text.find(';'), text.size() - 1) + 1);
  return one;
}

/// The text with one more rank.
std::string with(std::string_view present, const Gone& more) {
  std::optional<Gone> died, left;
  const auto take = [&](const Gone& one) {
    if (one.died && !died) died = one;
    if (!one.died && (!left || one.entered < left->entered)) left = one;
  };
  while (!present.empty()) take(next_gone(present));
  take(more);
  std::string text;
  if (left) text += str(left->rank, " ", left->entered, " l;");
  if (died) text += str(died->rank, " ", died->entered, " d;");
  return text;
}

void add(Store& store, const Gone& one) {
  const auto entry = store.get(kGone);
  std::string present = entry ? entry->value : std::string();
  for (;;) {
    const std::string next = with(present, one);
    if (next == present) return;
    std::string now = store.compare_set(kGone, present, next);
    if (now == next) return;
    present = std::move(now);  // another rank was faster
  }
}

}  // namespace

void report_death(Store& store, int rank) { add(store, {rank, 0, true}); }
void report_leaving(Store& store, int rank, std::uint64_t entered) {
  add(store, {rank, entered, false});
}

Monitor::Monitor(std::shared_ptr<Store> store, int rank, int size, double timeout,
                 std::function<void()> on_failure, std::function<void()> watch)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      timeout_(timeout),
      interval_(interval_of(timeout)),
      on_failure_(std::move(on_failure)),
      watch_(std::move(watch)) {}

void Monitor::start() {
  thread_ = std::thread([this] { loop(); });
}

void Monitor::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    stop_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;  // it has never begun
  thread_.join();
  try {
    report_leaving(*store_, rank_, progress_.entered);
  } catch (...) {  // the store has ended too
  }
}

void Monitor::entered(std::uint64_t number, std::string call) {
  const std::lock_guard lock(mutex_);
  progress_.entered = number;
  progress_.call = std::move(call);
}

void Monitor::completed(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  progress_.completed = number;
}

std::exception_ptr Monitor::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Monitor::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    try {
      publish();
    } catch (const std::exception& e) {
      fail(FailureKind::error, e.what());
    }
    look();
    watch_();
    lock.lock();
    wake_.wait_for(lock, interval_, [&] { return stop_; });
  }
}

void Monitor::look() noexcept {
  try {
    if (!failed()) read();
  } catch (const std::exception& e) {
    fail(FailureKind::error, e.what());
  }
}

void Monitor::publish() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = str(progress_.entered, " ", progress_.completed, " ", progress_.call);
  }
  store_->set(progress_key(rank_), text.substr(0, 512));
}

void Monitor::read() {
  if (const auto failure = store_->get(kFailure); failure && !failure->value.empty())
    set_failure(failure->value);
  else if (const auto gone = store_->get(kGone)) look_for_gone(gone->value);
}

void Monitor::look_for_gone(std::string_view gone) {
  Progress mine;
  {
    const std::lock_guard lock(mutex_);
    mine = progress_;
  }
  const bool waits = mine.entered > mine.completed;
  while (!gone.empty()) {
    const Gone one = next_gone(gone);
    if (one.rank == rank_) continue;
    if (one.died)
      return fail(FailureKind::error, str("rank ", one.rank,
                                          " has died: its connection was closed without a "
                                          "farewell"));
    if (waits && one.entered < mine.entered)
      return fail(FailureKind::error, str("rank ", one.rank, " has left without entering ",
                                          mine.call, ", call ", mine.entered));
  }
}

void Monitor::fail(FailureKind kind, const std::string& reason) noexcept {
  if (failed()) return;
  const std::string own = static_cast<char>(kind) + reason.substr(0, 16 * 1024);
  std::string first = own;
  try {
    first = store_->compare_set(kFailure, "", own);
  } catch (...) {  // without a store, every rank reports what it knows
  }
  set_failure(first);
}

void Monitor::set_failure(const std::string& kind_and_text) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    const std::string text = kind_and_text.substr(1);
    switch (static_cast<FailureKind>(kind_and_text.front())) {
      case FailureKind::timeout: failure_ = std::make_exception_ptr(CommTimeoutError(text)); break;
      case FailureKind::aborted: failure_ = std::make_exception_ptr(CommAbortedError(text)); break;
      default: failure_ = std::make_exception_ptr(CommError(text));
    }
    failed_.store(true, std::memory_order_release);
  }
  on_failure_();
}

std::vector<int> Monitor::silent_at_end(double waited) {
  std::vector<int> silent;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || store_->get(str(kEnds, "/", rank))) continue;
    const auto entry = store_->get(progress_key(rank));
    if ((entry ? entry->age : waited) > timeout_) silent.push_back(rank);
  }
  return silent;
}

void Monitor::farewell() noexcept {
  try {
    const Clock::time_point begin = Clock::now();
    store_->set(str(kEnds, "/", rank_), "");
    std::int64_t ended = store_->add(kEnds, 1);
    const Clock::duration step = duration_of(std::clamp(timeout_ / 10, 0.02, 1.0));
    Clock::time_point next = begin + duration_of(timeout_);
    std::vector<int> before;
    while (ended < size_ && !failed()) {
      // The longer it takes, the fewer requests.
      const Clock::duration waited = Clock::now() - begin;
      std::this_thread::sleep_for(std::clamp<Clock::duration>(
          waited / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(500)));
      ended = store_->add(kEnds, 0);
      if (rank_ != 0 || ended >= size_ || Clock::now() < next) continue;
      next = Clock::now() + step;
      std::vector<int> silent = silent_at_end(std::chrono::duration<double>(waited).count());
      // Twice: if all processes were stopped, they need a moment to report again.
      if (!silent.empty() && silent == before)
        fail(FailureKind::timeout, str(ranks_text(silent), silent.size() == 1 ? " has" : " have",
                                       " not ended as the others, nor reported for ",
                                       seconds_text(timeout_), " (stopped, dead or unreachable)"));
      before = std::move(silent);
    }
  } catch (const std::exception& e) {
    fail(FailureKind::error, e.what());
  }
}

std::string Monitor::state_text(const std::optional<Store::Entry>& entry) const {
  if (!entry) return "has never reported";
  const Progress p = progress_of(entry->value);
  const double fresh = 4 * std::chrono::duration<double>(interval_).count() + 1;
  if (entry->age > fresh)
    return str("has not answered for ", seconds_text(entry->age),
               " (stopped, dead or unreachable), its last report was after call ", p.completed);
  if (p.entered > p.completed) return str("is in ", p.call, ", call ", p.entered);
  return str("computes, its last completed call is ", p.completed);
}

std::string Monitor::missing(std::uint64_t number, const std::string& call, double seconds) {
  std::vector<int> absent, waiting;
  std::string details;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) {
      waiting.push_back(rank);
      continue;
    }
    std::optional<Store::Entry> entry;
    try {
      entry = store_->get(progress_key(rank));
    } catch (...) {
      return str(call, ", call ", number, " is not complete after ", seconds_text(seconds),
                 "; the store of rank 0 does not answer");
    }
    const bool entered = entry && progress_of(entry->value).entered >= number;
    (entered ? waiting : absent).push_back(rank);
    const std::string state = state_text(entry);
    if (!entered || state.starts_with("has not")) details += str("; rank ", rank, " ", state);
  }
  const std::string what = str(call, ", call ", number);
  if (absent.empty())
    return str("all ranks have entered ", what, ", which is not complete after ",
               seconds_text(seconds), details);
  return str(ranks_text(absent), absent.size() == 1 ? " has" : " have", " not entered ", what, "; ",
             ranks_text(waiting), waiting.size() == 1 ? " waits" : " wait", " since ",
             seconds_text(seconds), details);
}

std::string Monitor::silent(int peer, const std::string& call, double seconds) {
  std::optional<Store::Entry> entry;
  try {
    entry = store_->get(progress_key(peer));
  } catch (...) {  // the text is all that is lost
  }
  return str(call, " of rank ", rank_, " is not complete after ", seconds_text(seconds), "; rank ",
             peer, " ", state_text(entry));
}

}  // namespace braid::parallel::process
