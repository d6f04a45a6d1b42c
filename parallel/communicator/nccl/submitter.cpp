#include "communicator/nccl/submitter.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace braid::parallel::nccl {
namespace {

constexpr std::chrono::milliseconds kLook{5};  // how often a waiting thread calls stop()

struct Task {
  std::function<void()> work;
  bool done = false;
};
using TaskPtr = std::shared_ptr<Task>;

/// A thread's queue of tasks. If its running task hangs, both are abandoned together.
struct Queue {
  std::deque<TaskPtr> waiting;
  TaskPtr running;
};

struct Submitter {
  std::mutex mutex;  // guards all queues and tasks
  std::condition_variable changed;
  std::shared_ptr<Queue> queue;  // null before the first task
};

// Never destroyed: its thread may be inside the library while static objects are destroyed. A
// forked child has no copy of the thread, and locks that the thread held stay locked there. The
// child therefore starts with a new submitter.
std::atomic<Submitter*> current{nullptr};

Submitter& submitter() {
  static std::once_flag first;
  std::call_once(first, [] {
    current = new Submitter;
    ::pthread_atfork(nullptr, nullptr, [] { current = new Submitter; });
  });
  return *current;
}

void serve(Submitter& s, const std::shared_ptr<Queue>& queue) {
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock, [&] { return !queue->waiting.empty() || s.queue != queue; });
    if (s.queue != queue) return;  // abandoned: it returned too late
    queue->running = queue->waiting.front();
    queue->waiting.pop_front();
    const TaskPtr task = queue->running;
    lock.unlock();
    task->work();
    task->work = nullptr;  // frees what it owns, without the lock
    lock.lock();
    task->done = true;
    queue->running = nullptr;
    s.changed.notify_all();
  }
}

/// Starts a new thread for `queue`. Requires the lock.
void start(Submitter& s, const std::shared_ptr<Queue>& queue) {
  std::thread([&s, queue] { serve(s, queue); }).detach();
  s.queue = queue;
}

}  // namespace

Ended submit(std::function<void()> work, Clock::time_point deadline,
             const std::function<bool()>& stop) {
  Submitter& s = submitter();
  const auto task = std::make_shared<Task>();
  task->work = std::move(work);
  std::unique_lock lock(s.mutex);
  if (!s.queue) start(s, std::make_shared<Queue>());
  s.queue->waiting.push_back(task);
  s.changed.notify_all();
  bool stopped = false;
  while (!task->done && !stopped && Clock::now() < deadline) {
    s.changed.wait_until(lock, std::min(deadline, Clock::now() + kLook));
    stopped = !task->done && stop();
  }
  if (task->done) return Ended::yes;
  const std::shared_ptr<Queue> queue = s.queue;
  if (queue && queue->running == task) {
    const auto next = std::make_shared<Queue>();
    next->waiting = std::move(queue->waiting);
    queue->waiting.clear();
    // If no thread can be started, waiting tasks reach their deadline and the next call retries.
    s.queue = nullptr;
    s.changed.notify_all();
    if (!next->waiting.empty()) start(s, next);
  } else if (queue) {
    std::erase(queue->waiting, task);
  }
  return stopped ? Ended::stopped : Ended::late;
}

}  // namespace braid::parallel::nccl
