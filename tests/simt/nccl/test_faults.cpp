// Every call of the library fails, hangs, or comes back wrong, in turn. What is documented then
// happens, in time; parameters are as before the step; and over a new communicator training goes on
// to the same bits.
#include <iostream>

#include "nccl.hpp"

using namespace braid;
using namespace braid::test;

namespace {

constexpr std::uint64_t kCalls = 100;
constexpr int kMostSteps = 8;
constexpr std::chrono::milliseconds kLongest{5000};

struct Outcome {
  std::string type;  // what was thrown, the type of ours; or "nothing"
  std::string text;
  std::chrono::milliseconds took{0};
  int steps = 0;          // that worked before
  bool unchanged = true;  // the parameters, by the step that failed
};

/// Steps of a program whose communicators are not made yet, until one fails.
Outcome run_until_failure(Program& program) {
  Outcome outcome;
  for (; outcome.steps < kMostSteps; ++outcome.steps) {
    const std::vector<float> before = program.numbers();
    const Clock::time_point start = Clock::now();
    std::exception_ptr error;
    try {
      program.step();
    } catch (...) {
      error = std::current_exception();
    }
    outcome.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    outcome.type = error ? exception_type(error) : "nothing";
    if (!error) continue;
    outcome.text = exception_message(error);
    outcome.unchanged = program.numbers() == before;
    return outcome;
  }
  return outcome;
}

/// The fault at each of the first calls: `timeout` for each collective, and the exception that has
/// to come.
void check_fault(nccl::Fault fault, std::chrono::milliseconds timeout,
                 const std::string& expected) {
  const auto right = [] {
    const Scene scene;
    return trajectory(kMostSteps);
  }();
  std::uint64_t shown = 0;
  std::chrono::milliseconds longest{0};
  const bool waits = expected == "CommTimeoutError";
  int again = 5;
  for (std::uint64_t k = 1; k <= kCalls; ++k) {
    INFO("call " << k);
    const Scene scene(CommunicatorKind::nccl, static_cast<double>(timeout.count()) / 1000);
    Program program;
    nccl::fail_call(k, fault);
    const Outcome outcome = run_until_failure(program);
    INFO(outcome.text);
    // a busy machine was late by itself: once more, with more time
    if (!nccl::failed() && outcome.type == "CommTimeoutError" && timeout < kLongest) {
      timeout = 2 * timeout;
      --k;
      continue;
    }
    REQUIRE(nccl::failed());
    const std::chrono::milliseconds limit = (waits ? timeout : 0ms) + 1s;
    if (outcome.took > limit && again-- > 0) {  // a busy machine again
      --k;
      continue;
    }
    if (outcome.type != "nothing") ++shown;
    CHECK(outcome.type == expected);
    CHECK(outcome.unchanged);
    CHECK(outcome.took <= limit);
    longest = std::max(longest, outcome.took);
    nccl::fail_call(0, nccl::Fault::none);
    nccl::release();
    // The failure is not forgotten by itself.
    if (k % 10 == 1 && outcome.steps > 0) {
      try {
        program.step();
        FAIL("a failed communicator was used");
      } catch (const CommError& e) {
        CHECK(std::string(e.what()).find("got one that failed before: ") != std::string::npos);
      }
    }
    CHECK(program.numbers() == right[static_cast<std::size_t>(outcome.steps)]);
    parallel::set_communicator_options({.kind = CommunicatorKind::nccl, .timeout = 20});
    // Momentum is of the steps that worked; so the next one is the next one.
    program.step();
    CHECK(program.numbers() == right[static_cast<std::size_t>(outcome.steps) + 1]);
    CHECK(all_findings() == "");
  }
  parallel::reset_communicators();
  CHECK(nccl::alive() == 0);
  CHECK(shown == kCalls);
  std::cout << "SHOWS: NCCL: " << expected << " at each of the first " << shown
            << " calls, the longest after " << longest.count() << " ms ("
            << (waits ? str("deadline ", timeout.count(), " ms") : "which waits for none")
            << "), parameters bit-unchanged\n";
}

}  // namespace

TEST_CASE("nccl: an error of any call is a CommError", "[nccl][faults]") {
  check_fault(nccl::Fault::error, 20s, "CommError");
}
TEST_CASE("nccl: an asynchronous error after any call is a CommError", "[nccl][faults]") {
  check_fault(nccl::Fault::asynchronous, 20s, "CommError");
}
TEST_CASE("nccl: a call that does not return ends with its deadline", "[nccl][faults]") {
  check_fault(nccl::Fault::hang, 80ms, "CommTimeoutError");
}
TEST_CASE("nccl: a communicator that stays at work ends with its deadline", "[nccl][faults]") {
  check_fault(nccl::Fault::in_progress, 80ms, "CommTimeoutError");
}
TEST_CASE("nccl: a collective that does not end on its devices ends with its deadline",
          "[nccl][faults]") {
  check_fault(nccl::Fault::stall, 80ms, "CommTimeoutError");
}
