#pragma once
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <braid/core/autograd.hpp>

namespace braid::parallel {

/// Jobs of one device, one at a time, in their order. Only where a job waits for those of other
/// devices, or for one that has not begun here, the next one runs meanwhile, on a thread of its
/// own; so jobs that do not wait cost no thread.
class Turns {
 public:
  Turns(std::vector<std::size_t> jobs, std::function<void(std::size_t)> job);
  ~Turns() = default;  // run() has ended
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// All of them; the calling thread runs what it can. Jobs must not throw.
  void run();

  /// The job of the calling thread is about to wait: another may run until take_back(). Nothing
  /// outside of a job. May throw std::system_error, if there is no thread to be had; then nothing
  /// has changed.
  static void pass();
  /// Waits for the turn.
  static void take_back();

 private:
  void run_rest();

  std::vector<std::size_t> jobs_;
  std::function<void(std::size_t)> job_;
  ThreadState state_;  // of the thread that called run()
  std::mutex turn_;    // guards what follows too
  std::size_t next_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace braid::parallel
