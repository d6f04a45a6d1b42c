// Tests of the worker threads of the devices: one thread per device, and again in a forked child.
#include <braid/core/internal/worker.hpp>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/child.hpp"
#include "support/errors.hpp"

namespace braid::test {
namespace {

/// Returns whether every device ran its job, those after the first on separate threads that have
/// the device's name.
bool each_ran() {
  const std::vector<Device> list{Device("cpu:0"), Device("cpu:1")};
  std::vector<std::thread::id> ran(list.size());
  char name[16] = "cpu:1";
  run_on_devices(list, [&](std::size_t i) {
    ran[i] = std::this_thread::get_id();
#if defined(__linux__)
    if (i == 1) ::pthread_getname_np(::pthread_self(), name, sizeof name);
#endif
  });
  return ran[0] == std::this_thread::get_id() && ran[1] != std::thread::id() && ran[1] != ran[0] &&
         name == std::string("cpu:1");
}

/// Returns the exit status of a child that runs f, or -1 if it hung or crashed.
template <class F> int forked(F f) {
  const ::pid_t pid = ::fork();
  if (pid == 0) ::_exit(f());
  int status = -1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    if (::waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return -1;
}

/// Sets the size of the stacks of new threads; with one that is too large there are none.
void set_stacks(std::size_t bytes) {
  ::pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, bytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace

TEST_CASE("child: workers without a thread", "[.child][worker-none]") {
  REQUIRE(each_ran());
  const std::vector<Device> list{Device("cpu:0"), Device("cpu:1"), Device("cpu:2")};
  std::atomic<int> ran{0};
  const auto all = [&] {
    run_on_devices(list, [&](std::size_t) {
      ++ran;
      while (ran < 3) std::this_thread::yield();  // each waits for the others
    });
  };
  set_stacks(std::size_t{1} << 46);
  CHECK_THROWS_AS(all(), std::system_error);
  CHECK(ran == 0);
  set_stacks(std::size_t{1} << 20);
  all();
  CHECK(ran == 3);
  CHECK(each_ran());
}

TEST_CASE("worker: without a thread for each job none of them runs", "[worker][errors]") {
  CHECK_CHILD("BRAID_CPU_DEVICES=3", "[.child][worker-none]");
}

TEST_CASE("child: workers after a fork", "[.child][worker-fork]") {
  REQUIRE(each_ran());
  for (int i = 0; i < 5; ++i) {
    CHECK(forked([] { return each_ran() && each_ran() ? 7 : 1; }) == 7);
    CHECK(each_ran());
  }
  // In the child of a child.
  CHECK(forked([] {
          return each_ran() && forked([] { return each_ran() ? 5 : 1; }) == 5 && each_ran() ? 7 : 1;
        }) == 7);
}

TEST_CASE("worker: a forked child has workers of its own", "[worker][process]") {
  CHECK_CHILD("BRAID_CPU_DEVICES=2", "[.child][worker-fork]");
}

}  // namespace braid::test
