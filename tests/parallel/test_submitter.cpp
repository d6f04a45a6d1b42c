// The thread that calls NCCL: which work runs on it, in which order, and what happens to work that
// no caller waits for any more. Needs no device.
#include "communicator/nccl/submitter.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "simt/engine/child.hpp"
#include "support/check.hpp"
#include "support/sanitized.hpp"

namespace braid::test {

using parallel::nccl::Clock;
using parallel::nccl::Ended;
using parallel::nccl::submit;

namespace {

using namespace std::chrono_literals;
constexpr std::chrono::seconds kLong{20};        // for events that must happen
constexpr std::chrono::milliseconds kShort{30};  // for events that must not

bool never() { return false; }

/// Waits up to kLong for f() to be true; returns whether it was.
template <class F> bool comes(const F& f) {
  for (const auto until = Clock::now() + kLong; !f(); std::this_thread::sleep_for(1ms))
    if (Clock::now() >= until) return false;
  return true;
}

/// Returns the thread that runs work now.
std::thread::id thread_of_work() {
  const auto id = std::make_shared<std::thread::id>();
  return submit([id] { *id = std::this_thread::get_id(); }, Clock::now() + kLong, never) ==
                 Ended::yes
             ? *id
             : std::thread::id();
}

/// Work that is submitted by a separate thread.
class Given {
 public:
  Given(std::function<void()> work, Clock::duration limit)
      : thread_([this, limit, w = std::move(work), s = state_]() mutable {
          ended_ = submit(std::move(w), Clock::now() + limit, [s] {
            s->asked = true;  // called after it is queued
            return s->stop.load();
          });
        }) {}
  ~Given() {
    if (thread_.joinable()) thread_.join();
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

  [[nodiscard]] bool queued() const {
    return comes([this] { return state_->asked.load(); });
  }
  void stop() { state_->stop = true; }
  Ended ended() {
    thread_.join();
    return ended_;
  }

 private:
  struct State {
    std::atomic<bool> asked{false}, stop{false};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  Ended ended_ = Ended::yes;
  std::thread thread_;
};

/// Work that hangs until it is released. It owns its state, as submit() requires.
class Hanging {
  struct State {
    std::atomic<bool> begun{false}, go{false};
    std::thread::id thread;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();

 public:
  explicit Hanging(Clock::duration limit)
      : given(
            [s = state_] {
              s->thread = std::this_thread::get_id();
              s->begun = true;
              while (!s->go) std::this_thread::sleep_for(1ms);
            },
            limit) {}
  ~Hanging() { go(); }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;

  Given given;
  [[nodiscard]] bool begun() const {
    return comes([this] { return state_->begun.load(); });
  }
  [[nodiscard]] std::thread::id thread() const { return state_->thread; }  // after it began
  void go() { state_->go = true; }
  /// True once it was released, has returned, and its work was destroyed.
  [[nodiscard]] bool gone() const {
    return comes([this] { return state_.use_count() == 1; });
  }
};

}  // namespace

TEST_CASE("submitter: all work runs on one other thread, in order", "[submitter]") {
  constexpr int kThreads = 4, kEach = 50;
  struct Seen {
    std::set<std::thread::id> ran_on;  // without a lock: the test is that one thread at a time runs
    std::vector<int> of[kThreads];
    std::atomic<int> inside{0}, most{0};
  };
  const auto seen = std::make_shared<Seen>();
  std::vector<std::thread> threads;
  std::vector<std::thread::id> callers{std::this_thread::get_id()};
  std::atomic<int> ended{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        ended += submit(
                     [seen, t, i] {
                       seen->most = std::max(seen->most.load(), ++seen->inside);
                       seen->ran_on.insert(std::this_thread::get_id());
                       seen->of[t].push_back(i);
                       --seen->inside;
                     },
                     Clock::now() + kLong, never) == Ended::yes;
    });
    callers.push_back(threads.back().get_id());
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ended == kThreads * kEach);
  CHECK(seen->most == 1);
  CHECK(seen->ran_on.size() == 1);
  for (const std::thread::id caller : callers) CHECK(seen->ran_on.count(caller) == 0);
  for (const std::vector<int>& list : seen->of) {
    CHECK(list.size() == kEach);
    CHECK(std::is_sorted(list.begin(), list.end()));
  }
  CHECK(thread_of_work() == *seen->ran_on.begin());
}

TEST_CASE("submitter: what waits begins in the order in which it was given", "[submitter]") {
  const auto order = std::make_shared<std::string>();
  Hanging first(kLong);
  REQUIRE(first.begun());
  std::list<Given> waiting;
  for (const char name : {'a', 'b', 'c'}) {
    waiting.emplace_back([order, name] { *order += name; }, kLong);
    CHECK(waiting.back().queued());
  }
  first.go();
  CHECK(first.given.ended() == Ended::yes);
  for (Given& each : waiting) CHECK(each.ended() == Ended::yes);
  CHECK(*order == "abc");
}

TEST_CASE("submitter: work that hangs is given up with its thread", "[submitter]") {
  for (const bool stopped : {false, true}) {
    INFO((stopped ? "stopped" : "late"));
    const auto ran_on = std::make_shared<std::thread::id>();
    Hanging hung(stopped ? Clock::duration(kLong) : Clock::duration(kShort * 10));
    REQUIRE(hung.begun());
    Given behind([ran_on] { *ran_on = std::this_thread::get_id(); }, kLong);
    CHECK(behind.queued());
    if (stopped) hung.given.stop();
    CHECK(hung.given.ended() == (stopped ? Ended::stopped : Ended::late));
    CHECK(behind.ended() == Ended::yes);
    CHECK(*ran_on != std::thread::id());
    CHECK(*ran_on != hung.thread());
    // A thread that returns is not used again.
    hung.go();
    CHECK(hung.gone());
    for (int i = 0; i < 20; ++i) CHECK(thread_of_work() == *ran_on);
  }
}

TEST_CASE("submitter: the next work makes the new thread where none waited", "[submitter]") {
  Hanging hung(kShort);
  REQUIRE(hung.begun());
  CHECK(hung.given.ended() == Ended::late);
  const std::thread::id next = thread_of_work();  // while the work still hangs
  CHECK(next != std::thread::id());
  CHECK(next != hung.thread());
  CHECK(thread_of_work() == next);
}

TEST_CASE("submitter: what is late or stopped before it begins never begins", "[submitter]") {
  Hanging first(kLong);
  REQUIRE(first.begun());
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto work = [begun] { ++*begun; };
  CHECK(submit(work, Clock::now() + kShort, never) == Ended::late);
  CHECK(submit(work, Clock::now() - 1s, never) == Ended::late);
  CHECK(submit(work, Clock::now() + kLong, [] { return true; }) == Ended::stopped);
  CHECK(begun.use_count() == 2);  // `work` and this variable
  first.go();
  CHECK(first.given.ended() == Ended::yes);
  CHECK(thread_of_work() == first.thread());
  CHECK(*begun == 0);
  CHECK(submit(work, Clock::now() + kLong, never) == Ended::yes);  // the queue is empty
  CHECK(*begun == 1);
}

TEST_CASE("submitter: what the work owned is gone when submit() returns", "[submitter]") {
  const auto ended_on = std::make_shared<std::thread::id>();
  std::shared_ptr<int> owned(new int(1), [ended_on](int* p) {
    *ended_on = std::this_thread::get_id();
    delete p;
  });
  const std::weak_ptr<int> watch = owned;
  CHECK(submit([mine = std::move(owned)] { (void)*mine; }, Clock::now() + kLong, never) ==
        Ended::yes);
  CHECK(watch.expired());
  CHECK(*ended_on == thread_of_work());
}

TEST_CASE("submitter: a forked child has a thread of its own", "[submitter]") {
  if (BRAID_TSAN) return;  // TSan allows no threads after a fork
  Hanging hung(kLong);
  REQUIRE(hung.begun());
  CHECK(in_child([parent = hung.thread()] {
          int ran = 0;
          if (submit([&ran] { ++ran; }, Clock::now() + kLong, never) != Ended::yes)
            return std::string("not run");
          return std::string(ran == 1 && thread_of_work() == thread_of_work() &&
                                     thread_of_work() != std::thread::id()
                                 ? "run"
                                 : "on several threads");
        }) == "run");
  hung.go();
  CHECK(hung.given.ended() == Ended::yes);
}

}  // namespace braid::test
