#pragma once
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <braid/core/autograd.hpp>

namespace braid::parallel {

/// A serial executor: runs the jobs of one device in order, one at a time. While a job waits for
/// jobs of other devices, or for a later job of this device, the next job runs on a separate
/// thread. Jobs that do not wait need no extra thread.
class Turns {
 public:
  Turns(std::vector<std::size_t> jobs, std::function<void(std::size_t)> job);
  ~Turns() = default;  // run() has ended
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Runs all jobs; the calling thread runs as many as it can. Jobs must not throw.
  void run();

  /// Called before the calling thread's job waits: another job may run until take_back(). Does
  /// nothing outside a job. May throw std::system_error if no thread can be started; then nothing
  /// has changed.
  static void pass();
  /// Waits until no other job runs.
  static void take_back();

 private:
  void run_rest();

  std::vector<std::size_t> jobs_;
  std::function<void(std::size_t)> job_;
  ThreadState state_;  // of the thread that called run()
  std::mutex turn_;    // held by the running job; guards the members below too
  std::size_t next_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace braid::parallel
