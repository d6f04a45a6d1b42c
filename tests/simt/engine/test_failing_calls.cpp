// Every runtime call of a training step fails in turn. What is documented then happens: an
// exception of ours, or the call was one that can be done without;
// parameters as before the step, or the device is lost; nothing leaks; and the next step, where the
// device still works, is right.
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include <braid/braid.hpp>

#include "child.hpp"
#include "simt/runtime/control.hpp"
#include "support/catch.hpp"

using namespace braid;

namespace {

struct Net : nn::Module {
  nn::Linear fc1{5, 8};
  nn::Linear fc2{8, 3};
  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};

/// Two steps of a model on two devices: what they need is made before, so that a step is calls of
/// the engine alone.
struct Program {
  parallel::DataParallel<Net> model{Net()};
  optim::SGD optimizer;
  Tensor x, labels;

  Program()
      : optimizer((to(model, default_device()), parameters(model)), {.lr = 0.1, .momentum = 0.9}) {
    x = randn({6, 5}, {.device = default_device()});
    labels = tensor({0, 1, 2, 0, 1, 2}).to(default_device());
  }
  void step() {
    optimizer.zero_grad();
    cross_entropy(model(x), labels).backward();
    optimizer.step();
    for (const Device d : devices()) synchronize(d);
  }
  std::vector<float> numbers() {
    std::vector<float> all;
    for (const auto& p : parameters(model))
      for (const float v : p.detach().to(Device("cpu")).template to_vector<float>())
        all.push_back(v);
    return all;
  }
};

std::vector<float> after_steps(int n) {
  Program program;
  for (int i = 0; i < n; ++i) program.step();
  return program.numbers();
}

/// What an exception of a step is; of a replica's, its cause.
std::string kind_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ReplicaError& e) {
    return kind_of(e.failures.front().error);
  } catch (const DeviceLostError&) {
    return "lost";
  } catch (const OutOfMemoryError&) {
    return "out of memory";
  } catch (const CudaError& e) {
    return e.name.starts_with("cudaError") ? "thrown"
                                           : str("an error without its code's name: ", e.what());
  } catch (const std::exception& e) {
    return str("an exception of another kind: ", e.what());
  }
}

using Counts = std::map<std::string, int>;

/// How many of each kind of object (stream, event, pinned memory, …) live once the program is over.
Counts alive() {
  Counts counts;
  for (const Device d : devices()) {
    synchronize(d);
    empty_cache(d);
  }
  for (const simt::LiveObject& object : simt::live_objects()) ++counts[object.what];
  return counts;
}

/// What steps without failures leave: the engine's own streams, its pinned memory, and an event for
/// each piece of that once every piece has been used.
Counts alive_after_steps() {
  {
    Program program;
    for (int i = 0; i < 2; ++i) program.step();
    for (const Device d : devices())
      for (int i = 0; i < 32; ++i) (void)full({1}, i).to(d).to(Device("cpu"));
  }
  return alive();
}

struct Code {
  cudaError_t code;
  const char* name;
  bool persistent = false;  // every call fails from the k-th on, until the step is over
};

/// What a call that fails is measured by: numbers of the parameters before the step and after it,
/// and what may live at the end.
struct Expected {
  std::vector<float> before, after;
  Counts alive;
};

/// One case; `warm`: one step is done before, so that every cache is filled.
std::string failing_call(std::uint64_t k, const Code& failure, bool warm,
                         const Expected& expected) {
  const cudaError_t code = failure.code;
  const std::vector<float>&before = expected.before, &after = expected.after;
  std::string outcome;
  {
    Program program;
    if (warm) program.step();
    const std::vector<float> start = program.numbers();
    if (start != before) return "the start is another one";
    simt::fail_call(k, code, failure.persistent);
    try {
      program.step();
      outcome = "handled";
    } catch (...) {
      outcome = kind_of(std::current_exception());
      if (outcome.size() > 20) return outcome;
    }
    const bool reached = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    if (!reached) return "not reached";
    // work that could neither be ordered nor waited for takes its device along
    if (failure.persistent) {
      try {
        (void)program.numbers();
        for (const Device d : devices()) synchronize(d);
      } catch (...) {
        outcome = kind_of(std::current_exception());
      }
    }
    if (outcome == "lost") {
      if (!simt::sticky(code) && !failure.persistent)
        return "a device lost for a code that is not sticky";
      try {
        program.step();
        return "a lost device that works";
      } catch (...) {
        if (const std::string again = kind_of(std::current_exception()); again != "lost")
          return str("a lost device, then ", again);
      }
    } else {
      if (simt::sticky(code) && outcome != "handled") return str("sticky, but ", outcome);
      // the call's result was not looked at, or came too late: the device must say so at the next
      // use
      if (simt::sticky(code)) {
        try {
          program.step();
          return "sticky, and the next step passes";
        } catch (...) {
          outcome = kind_of(std::current_exception());
          if (outcome != "lost") return str("sticky, then ", outcome);
        }
      } else {
        const std::vector<float> now = program.numbers();
        if (now != (outcome == "handled" ? after : before))
          return str(outcome, ", but the parameters are neither as before nor stepped");
        if (outcome != "handled") {
          program.step();
          if (program.numbers() != after) return str(outcome, ", but the next step is wrong");
        }
      }
    }
  }
  if (outcome != "lost") {
    const Counts left = alive();
    for (const Device d : devices())
      if (memory_stats(d).in_use != 0)
        return str(outcome, ", but ", memory_stats(d).in_use, " bytes leak on ", d);
    for (const auto& [what, count] : left) {
      const auto usual = expected.alive.find(what);
      if (const int most = usual == expected.alive.end() ? 0 : usual->second; count > most)
        return str(outcome, ", but ", count, " of ", what, " live, not ", most);
    }
    for (const simt::Report& report : simt::take_reports())
      return str(outcome, ", with a report: ", report.text);
  }
  return outcome;
}

void setup() {
  setenv("BRAID_SIMT_DEVICES", "2", 1);
  unsetenv("BRAID_DEVICE");
}

std::string join(const std::vector<float>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}
std::vector<float> split(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}
std::vector<float> in_child_after(int steps) {
  return split(test::in_child([steps] {
    setup();
    return join(after_steps(steps));
  }));
}
Counts alive_in_child() {
  std::istringstream text(test::in_child([] {
    setup();
    std::string all;
    for (const auto& [what, count] : alive_after_steps()) all += str(what, "\n", count, "\n");
    return all;
  }));
  Counts counts;
  for (std::string what, count; std::getline(text, what) && std::getline(text, count);)
    counts[what] = std::stoi(count);
  return counts;
}

// The codes that end a device.
constexpr Code kSticky[] = {{cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
                            {cudaErrorLaunchFailure, "cudaErrorLaunchFailure"},
                            {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable"},
                            {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout"},
                            {cudaErrorAssert, "cudaErrorAssert"},
                            {cudaErrorHardwareStackError, "cudaErrorHardwareStackError"},
                            {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction"},
                            {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress"},
                            {cudaErrorInvalidAddressSpace, "cudaErrorInvalidAddressSpace"},
                            {cudaErrorInvalidPc, "cudaErrorInvalidPc"}};
constexpr Code kMemory{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
    kValue{cudaErrorInvalidValue, "cudaErrorInvalidValue"};

/// What call k of a step is made to return: without BRAID_CHECK_ALL=1 the sticky codes take turns,
/// and failures for ever are every fifth call's.
std::vector<Code> codes_of(std::uint64_t k, bool all) {
  std::vector<Code> codes{kMemory, kValue};
  if (all) codes.insert(codes.end(), std::begin(kSticky), std::end(kSticky));
  else codes.push_back(kSticky[k % std::size(kSticky)]);
  if (all || k % 5 == 0)
    for (Code code : {kMemory, kValue}) {
      code.persistent = true;
      codes.push_back(code);
    }
  return codes;
}

}  // namespace

TEST_CASE("each of the first 200 runtime calls of a training step fails in turn",
          "[simt][failing_calls]") {
  const std::vector<std::vector<float>> states{in_child_after(0), in_child_after(1),
                                               in_child_after(2)};
  REQUIRE(states[0].size() == 5 * 8 + 8 + 8 * 3 + 3);
  REQUIRE(states[0] != states[1]);
  REQUIRE(states[1] != states[2]);
  const Counts usual = alive_in_child();
  REQUIRE(usual.contains("stream"));
  const bool all = std::getenv("BRAID_CHECK_ALL") && *std::getenv("BRAID_CHECK_ALL") == '1';
  int cases = 0;
  std::map<std::string, int> outcomes;
  for (const std::size_t steps : {0, 1}) {
    std::uint64_t k = 1;
    for (bool reached = true; reached && k <= 200; ++k) {
      for (const Code& code : codes_of(k, all)) {
        const Expected expected{states[steps], states[steps + 1], usual};
        const std::string outcome = test::in_child([&] {
          setup();
          return failing_call(k, code, steps == 1, expected);
        });
        if (!(reached = outcome != "not reached")) break;
        INFO((steps == 1 ? "second" : "first")
             << " step, call " << k << " returns " << code.name
             << (code.persistent ? " for ever" : "") << ": " << outcome);
        CHECK((outcome == "handled" || outcome == "lost" || outcome == "thrown" ||
               outcome == "out of memory"));
        ++cases;
        ++outcomes[outcome];
      }
    }
    CHECK(k == 201);  // a step has that many calls
  }
  CHECK(outcomes["out of memory"] > 0);
  CHECK(outcomes["thrown"] > 0);
  CHECK(outcomes["lost"] > 0);
  std::cout << "SHOWS: " << cases
            << " runtime calls failed, numbers 1 to 200 of two steps: " << outcomes["thrown"]
            << " exceptions, " << outcomes["out of memory"] << " out of memory, "
            << outcomes["lost"] << " device lost, " << outcomes["handled"] << " done without\n";
}
