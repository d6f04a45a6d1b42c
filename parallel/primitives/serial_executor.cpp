#include "primitives/serial_executor.hpp"

#include <mutex>
#include <utility>

namespace braid::parallel {
namespace {

thread_local SerialExecutor* current = nullptr;  // the executor whose job this thread runs

}  // namespace

SerialExecutor::SerialExecutor(std::vector<std::size_t> jobs, std::function<void(std::size_t)> job)
    : jobs_(std::move(jobs)), job_(std::move(job)) {}

void SerialExecutor::run_rest() {
  SerialExecutor* const before = std::exchange(current, this);
  while (next_ < jobs_.size()) {
    job_(jobs_[next_++]);
    thread_state() = state_;
  }
  current = before;
}

void SerialExecutor::run() {
  state_ = thread_state();
  std::unique_lock turn(turn_);
  run_rest();
  while (!threads_.empty()) {  // a running one may start others
    std::thread thread = std::move(threads_.back());
    threads_.pop_back();
    turn.unlock();
    thread.join();
    turn.lock();
  }
}

void SerialExecutor::begin_wait() {
  SerialExecutor* const mine = current;
  if (!mine) return;
  if (mine->next_ < mine->jobs_.size()) {
    mine->threads_.emplace_back([mine] {
      const std::lock_guard turn(mine->turn_);
      thread_state() = mine->state_;
      mine->run_rest();
    });
  }
  mine->turn_.unlock();
}

void SerialExecutor::end_wait() {
  if (current) current->turn_.lock();
}

}  // namespace braid::parallel
