// Aborts: by the program, at every call; of a library whose abort does not return; and at the end
// of a process.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "nccl.hpp"
#include "support/errors.hpp"
#include "support/on_device.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("nccl: an abort by another thread, at the first 100 calls in turn", "[aborts]") {
  const auto right = [] {
    const Scene scene;
    return trajectory(kMostSteps);
  }();
  std::chrono::milliseconds longest{0};
  int aborted = 0, again = 5;
  for (std::uint64_t k = 1; k <= 100; ++k) {
    if (!in_part(k)) continue;
    INFO("call " << k);
    const Scene scene(CommunicatorKind::nccl, 30);
    Program program;
    const auto communicator = parallel::communicator_over(group(4));
    // blocks the call, so that the abort comes during it
    nccl::fail_call(k, nccl::Fault::hang);
    std::atomic<bool> over{false};
    std::thread other([&] {
      while (!nccl::failed() && !over) std::this_thread::sleep_for(1ms);
      if (!over) communicator->abort();
    });
    const Outcome outcome = run_until_failure(program);
    over = true;
    other.join();
    CHECK(outcome.type == "CommAbortedError");
    if (outcome.took > 1s + 500ms && again-- > 0) {  // a busy machine: try again
      --k;
      continue;
    }
    CHECK(outcome.took <= 1s + 500ms);  // the step itself, plus at most a second
    CHECK(outcome.unchanged);
    aborted += outcome.type == "CommAbortedError";
    longest = std::max(longest, outcome.took);
    CHECK_THROWS_AS(program.step(), CommAbortedError);
    CHECK_THROWS_TEXT(CommAbortedError,
                      "check: expected a communicator that works, got one that was aborted, over "
                      "cuda:0, cuda:1, cuda:2, cuda:3",
                      communicator->check());
    nccl::fail_call(0, nccl::Fault::none);
    nccl::release();
    parallel::reset_communicators();
    program.step();
    CHECK(program.numbers() == right.at(static_cast<std::size_t>(outcome.steps) + 1));
    CHECK(all_findings() == "");
  }
  CHECK(aborted >= 10);
  std::cout << "SHOWS: NCCL: CommAbortedError at " << aborted
            << " of the first 100 calls, the longest after " << longest.count() << " ms\n";
}

TEST_CASE("nccl: an abort that hangs too is leaked with a warning", "[aborts]") {
  const Scene scene;
  (void)take_warnings();
  Program program;
  program.step();
  parallel::set_communicator_options({.kind = CommunicatorKind::nccl, .timeout = 1});
  (void)parallel::communicator_over(group(4));
  const std::vector<float> before = program.numbers();
  nccl::set_abort_hangs(true);
  nccl::fail_call(1, nccl::Fault::stall);
  const Clock::time_point start = Clock::now();
  CHECK_THROWS_TEXT(CommTimeoutError,
                    "broadcast: expected an end within 1 s, got no end on cuda:*of NCCL over "
                    "cuda:0, cuda:1, cuda:2, cuda:3)",
                    program.step());
  CHECK(Clock::now() - start <= 4s);  // it would hang forever; other cases measure
  CHECK(take_warnings() ==
        "; broadcast: ncclCommAbort did not return within 0.4 s; the communicators over cuda:0, "
        "cuda:1, cuda:2, cuda:3 are leaked");
  CHECK(program.numbers() == before);
  // A new communicator works while the abort of the old one still hangs.
  nccl::fail_call(0, nccl::Fault::none);
  nccl::set_abort_hangs(false);
  parallel::set_communicator_options({.kind = CommunicatorKind::nccl, .timeout = 20});
  program.step();
  CHECK(program.numbers() != before);
  // The thread that hung continues with the remaining ranks.
  nccl::release();
  wait_until([] { return nccl::alive() == 4; });
  CHECK(nccl::alive() == 4);  // the new communicator's
}

TEST_CASE("nccl: abort and end, twice and in any order", "[aborts]") {
  const Scene scene;
  const int before = nccl::alive();
  for (const int aborts : {0, 1, 2}) {
    const auto communicator = parallel::make_nccl_communicator(group(3));
    CHECK(nccl::alive() == before + 3);
    communicator->check();
    for (int i = 0; i < aborts; ++i) communicator->abort();
    CHECK(nccl::alive() == before + (aborts == 0 ? 3 : 0));
    if (aborts) CHECK_THROWS_AS(communicator->check(), CommAbortedError);
  }
  CHECK(nccl::alive() == before);
  // Its destruction hangs. The wait for it is as long as for a collective, and no longer.
  {
    auto communicator = parallel::make_nccl_communicator(group(2), 1);
    nccl::fail_call(1, nccl::Fault::hang);
    const Clock::time_point start = Clock::now();
    communicator = nullptr;
    CHECK(Clock::now() - start <= 4s);
    CHECK(nccl::failed());
  }
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: aborts at any moment take no communicator away from a call", "[aborts]") {
  const Scene scene;
  std::mt19937 random(7);
  std::uniform_int_distribution<int> wait(0, 3000);
  for (int round = 0; round < 150; ++round) {
    INFO("round " << round);
    const auto communicator = parallel::make_nccl_communicator(group(3));
    std::vector<Tensor> x;
    for (const Device d : group(3)) x.push_back(ones({16}, {.device = d}));
    std::string type;
    std::thread other([&] {
      try {
        for (;;) {
          communicator->all_reduce(views_of(x));
          communicator->check();
        }
      } catch (...) {
        type = exception_type(std::current_exception());
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(wait(random)));
    communicator->abort();
    other.join();
    CHECK(type == "CommAbortedError");
    CHECK(nccl::alive() == 0);
    CHECK(all_findings() == "");
  }
}

TEST_CASE("nccl: a communicator that is made too late is aborted by who has made it", "[aborts]") {
  const Scene scene;
  // after ncclGetVersion, ncclGetUniqueId and ncclGroupStart: ncclCommInitRankConfig of each rank
  for (std::uint64_t k = 4; k <= 6; ++k) {
    INFO("call " << k);
    nccl::fail_call(k, nccl::Fault::late);
    CHECK_THROWS_AS(parallel::make_nccl_communicator(group(3), 0.3), CommTimeoutError);
    REQUIRE(nccl::failed());
    CHECK(nccl::alive() == 0);
    const std::uint64_t before = nccl::calls();
    nccl::release();
    wait_until([&] { return nccl::calls() != before; });
    CHECK(nccl::calls() == before + 1);  // ncclCommAbort, and nothing else
    wait_until([] { return nccl::alive() == 0; });
    CHECK(nccl::alive() == 0);
    nccl::fail_call(0, nccl::Fault::none);
    CHECK(parallel::make_nccl_communicator(group(3))->size() == 3);
    CHECK(all_findings() == "");
  }
}

TEST_CASE("nccl: a process ends while calls hang", "[aborts]") {
  const pid_t child = fork();
  if (child == 0) {
    parallel::set_communicator_options({.kind = CommunicatorKind::nccl, .timeout = 1});
    nccl::set_abort_hangs(true);
    int code = 1;
    try {
      static Program program;  // destroyed at the end of the process
      nccl::fail_call(60, nccl::Fault::hang);
      for (int i = 0; i < 4; ++i) program.step();
    } catch (const CommTimeoutError&) {
      code = nccl::failed() ? 7 : 6;  // 6: a timeout without the fault, on a busy machine
    } catch (...) {}
    std::exit(code);
  }
  int status = 0;
  pid_t ended = 0;
  for (int third = 0; third < 3 && ended == 0; ++third)
    wait_until([&] { return (ended = waitpid(child, &status, WNOHANG)) != 0; });
  if (ended == 0) kill(child, SIGKILL), waitpid(child, &status, 0);
  CHECK(ended == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}
