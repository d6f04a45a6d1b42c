// Each call of the library fails, hangs, or returns a wrong result, one per run. Then the
// documented behaviour follows, in time; parameters are as before the step; and with a new
// communicator, training continues to the same bits.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "nccl.hpp"
#include "support/on_device.hpp"

using namespace braid;
using namespace braid::test;

namespace {

constexpr std::uint64_t kCalls = 100;
constexpr std::chrono::milliseconds kLongest{5000};

/// Injects the fault at the first calls in turn. `timeout` applies to each collective; `expected`
/// is the exception that must be thrown.
void check_fault(nccl::Fault fault, std::chrono::milliseconds timeout,
                 const std::string& expected) {
  const auto right = [] {
    const Scene scene;
    return trajectory(kMostSteps);
  }();
  std::uint64_t tried = 0, shown = 0;
  std::chrono::milliseconds longest{0};
  const bool waits = expected == "CommTimeoutError";
  int again = 5;
  for (std::uint64_t k = 1; k <= kCalls; ++k) {
    if (!in_part(k)) continue;
    INFO("call " << k);
    const Scene scene(CommunicatorKind::nccl, static_cast<double>(timeout.count()) / 1000);
    Program program;
    nccl::fail_call(k, fault);
    const Outcome outcome = run_until_failure(program);
    INFO(outcome.text);
    // a busy machine was late without the fault: try again, with more time
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
    ++tried;
    if (outcome.type != "nothing") ++shown;
    CHECK(outcome.type == expected);
    CHECK(outcome.unchanged);
    CHECK(outcome.took <= limit);
    longest = std::max(longest, outcome.took);
    nccl::fail_call(0, nccl::Fault::none);
    nccl::release();
    // The communicator remembers its failure.
    if (tried % 10 == 1 && outcome.steps > 0) {
      const Outcome next = run_until_failure(program, 1);
      CHECK((next.type == "CommError" || next.type == "CommTimeoutError"));
      CHECK(next.text.find("got one that failed before: ") != std::string::npos);
    }
    CHECK(program.numbers() == right[static_cast<std::size_t>(outcome.steps)]);
    parallel::set_communicator_options({.kind = CommunicatorKind::nccl, .timeout = 20});
    // The momentum is that of the successful steps, so the next step equals the right next step.
    program.step();
    CHECK(program.numbers() == right[static_cast<std::size_t>(outcome.steps) + 1]);
    CHECK(all_findings() == "");
  }
  parallel::reset_communicators();
  CHECK(nccl::alive() == 0);
  CHECK(shown == tried);
  CHECK(tried >= 10);
  std::cout << "SHOWS: NCCL: " << expected << " at " << shown << " of the first " << kCalls
            << " calls, the longest after " << longest.count() << " ms ("
            << (waits ? str("deadline ", timeout.count(), " ms") : "which waits for none")
            << "), parameters bit-unchanged\n";
}

}  // namespace

TEST_CASE("nccl: an error of any call, told at once or later, is a CommError", "[faults]") {
  check_fault(nccl::Fault::error, 20s, "CommError");
  check_fault(nccl::Fault::asynchronous, 20s, "CommError");
}
// A call does not return; its communicator stays in progress; a collective does not end on its
// devices.
TEST_CASE("nccl: what does not end ends with its deadline", "[faults]") {
  for (const auto fault : {nccl::Fault::hang, nccl::Fault::in_progress, nccl::Fault::stall})
    check_fault(fault, 80ms, "CommTimeoutError");
}
