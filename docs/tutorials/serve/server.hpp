#pragma once
// Collects the requests of many threads into batches for a model.
#include <braid/braid.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace serve {

using braid::Tensor;

/// Answers the requests of any number of threads, at most `rows` of them in one call of the model
/// [n, …] -> [n, …]. A request waits at most `wait` for others. The model is in evaluation mode.
class Server {
 public:
  using Model = std::function<Tensor(const Tensor&)>;
  Server(Model model, std::int64_t rows, std::chrono::microseconds wait)
      : model_(std::move(model)),
        rows_(static_cast<std::size_t>(rows)),
        wait_(wait),
        thread_([this] { serve(); }) {}
  /// Answers the requests that are waiting, then stops.
  ~Server() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  /// The future gives the answer to one row, or the exception that the model throws for it. The
  /// caller must not change the row until then.
  std::future<Tensor> ask(const Tensor& row) {
    std::promise<Tensor> answer;
    std::future<Tensor> future = answer.get_future();
    const std::lock_guard lock(mutex_);
    queue_.push_back({row, std::move(answer)});
    if (queue_.size() == 1 || queue_.size() == rows_) changed_.notify_one();
    return future;
  }

 private:
  struct Request {
    Tensor row;
    std::promise<Tensor> answer;
  };

  void serve() {
    const braid::NoGrad guard;  // holds for this thread only
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      changed_.wait_for(lock, wait_, [&] { return stopping_ || queue_.size() >= rows_; });
      std::vector<Request> batch;
      for (; !queue_.empty() && batch.size() < rows_; queue_.pop_front())
        batch.push_back(std::move(queue_.front()));
      lock.unlock();
      answer(batch);
      lock.lock();
    }
  }

  /// If a batch fails, each of its requests is tried alone: only the wrong one fails.
  void answer(std::span<Request> batch) {
    std::vector<Tensor> rows;
    try {
      for (const Request& request : batch) rows.push_back(request.row);
      rows = unbind(model_(stack(rows)));
      braid::check(rows.size() == batch.size(), "Server: expected an answer for each row");
      for (Tensor& row : rows) row = row.clone();  // separate memory for each client
    } catch (...) {
      if (batch.size() == 1) return batch[0].answer.set_exception(std::current_exception());
      for (std::size_t i = 0; i < batch.size(); ++i) answer(batch.subspan(i, 1));
      return;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].answer.set_value(rows[i]);
  }

  const Model model_;
  const std::size_t rows_;
  const std::chrono::microseconds wait_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  bool stopping_ = false;
  std::jthread thread_;  // the last member: it ends before the others are destroyed
};

}  // namespace serve
