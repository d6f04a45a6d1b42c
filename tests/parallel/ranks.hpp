#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <braid/braid.hpp>
#include <braid/parallel/internal/thread_ranks.hpp>

#include "group.hpp"

namespace braid::test {

/// Runs f on `n` ranks, each a thread with a device, one after another in the list of devices.
/// Catch2 is not thread-safe, so f reports by exceptions: see `same` and `expect`. Rethrows that of
/// the lowest rank.
inline void on_ranks(int n, const std::function<void(parallel::ProcessCommunicator&)>& f,
                     double timeout = 60) {
  std::vector<Device> devices;
  for (int i = 0; i < n; ++i) devices.push_back(device(i % device_count()));
  auto ranks = parallel::detail::make_thread_communicators(devices, timeout);
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        f(*ranks[i]);
      } catch (...) {
        errors[i] = std::current_exception();
        ranks[i].reset();  // the others hear that it has left
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

/// The text of the exception that f throws; empty if it throws none.
template <class F> std::string text_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace braid::test
