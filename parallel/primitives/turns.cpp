#include "primitives/turns.hpp"

#include <utility>

namespace braid::parallel {
namespace {

thread_local Turns* current = nullptr;  // the executor whose job this thread runs

}  // namespace

Turns::Turns(std::vector<std::size_t> jobs, std::function<void(std::size_t)> job)
    : jobs_(std::move(jobs)), job_(std::move(job)) {}

void Turns::run_rest() {
  Turns* const before = std::exchange(current, this);
  while (next_ < jobs_.size()) {
    job_(jobs_[next_++]);
    thread_state() = state_;
  }
  current = before;
}

void Turns::run() {
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

void Turns::pass() {
  Turns* const mine = current;
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

void Turns::take_back() {
  if (current) current->turn_.lock();
}

}  // namespace braid::parallel
