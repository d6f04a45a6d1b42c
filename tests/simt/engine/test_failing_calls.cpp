// Makes each runtime call of a training step fail. Then the documented behaviour follows: one of
// our exceptions, unless the step can do without the call; parameters as before the step, or a lost
// device; no leaks; and a correct next step if the device still works.
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include <braid/braid.hpp>

#include "child.hpp"
#include "findings.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"
#include "support/on_device.hpp"

using namespace braid;

namespace {

struct Net : nn::Module {
  nn::Linear fc1{5, 8};
  nn::Linear fc2{8, 3};
  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};

/// A model on two devices. What a step needs is created before, so that a step makes only calls of
/// the engine.
struct Program {
  parallel::DataParallel<Net> model{Net()};
  optim::SGD optimizer;
  Tensor x, labels;

  Program()
      : optimizer((to(model, best_device()), parameters(model)), {.lr = 0.1, .momentum = 0.9}) {
    x = randn({6, 5}, {.device = best_device()});
    labels = tensor({0, 1, 2, 0, 1, 2}).to(best_device());
  }
  void step() {
    optimizer.zero_grad();
    cross_entropy(model(x), labels).backward();
    optimizer.step();
    for (const Device d : devices()) synchronize(d);
  }
  /// Returns the bytes of all parameters.
  std::string numbers() {
    std::string all;
    for (const auto& p : parameters(model)) {
      const std::vector<float> v = p.detach().to(Device("cpu")).template to_vector<float>();
      all.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
    }
    return all;
  }
};

/// Returns the kind of an exception of a step. For a ReplicaError, the kind of its cause.
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

/// Returns "handled", or the kind of what f throws.
template <class F> std::string outcome_of(F&& f) {
  try {
    f();
    return "handled";
  } catch (...) {
    return kind_of(std::current_exception());
  }
}

using Counts = std::map<std::string, int>;

/// Returns how many objects of each kind (stream, event, pinned memory, …) are alive now.
Counts alive() {
  Counts counts;
  for (const Device d : devices()) {
    synchronize(d);
    empty_cache(d);
  }
  for (const simt::LiveObject& object : simt::live_objects()) ++counts[object.what];
  return counts;
}

/// Returns what steps without failures leave alive: the engine's own streams, its pinned memory,
/// and one event for each piece of that memory, once every piece has been used.
Counts alive_after_steps() {
  {
    Program program;
    for (int i = 0; i < 2; ++i) program.step();
    for (const Device d : devices())
      for (int i = 0; i < 32; ++i) (void)full({1}, i + 0.0).to(d).to(Device("cpu"));
  }
  return alive();
}

struct Code {
  cudaError_t code;
  bool persistent = false;  // every call fails from the k-th on, until the step ends
};

/// What a failing call is compared with: the parameters before and after the step, and the objects
/// that may be alive at the end.
struct Expected {
  std::string before, after;
  Counts alive;
};

/// Runs one test. With `warm`, one step is done before, so that every cache is filled.
std::string failing_call(std::uint64_t k, const Code& failure, bool warm,
                         const Expected& expected) {
  const bool sticky = simt::sticky(failure.code);
  std::string outcome;
  {
    Program program;
    const auto step = [&] { return outcome_of([&] { program.step(); }); };
    if (warm) program.step();
    if (program.numbers() != expected.before) return "the start is another one";
    simt::fail_call(k, failure.code, failure.persistent);
    outcome = step();
    const bool reached = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    if (outcome.size() > 20) return outcome;
    if (!reached) return "not reached";
    // a device whose work could be neither ordered nor waited for is lost
    if (failure.persistent) {
      const std::string late = outcome_of([&] {
        (void)program.numbers();
        for (const Device d : devices()) synchronize(d);
      });
      if (late != "handled") outcome = late;
    }
    if (outcome == "lost") {
      if (!sticky && !failure.persistent) return "a device lost for a code that is not sticky";
      if (const std::string next = step(); next != "lost") return str("a lost device, then ", next);
    } else if (sticky) {
      if (outcome != "handled") return str("sticky, but ", outcome);
      // the call's result was ignored, or came too late: the next use must report the lost device
      if (outcome = step(); outcome != "lost") return str("sticky, then ", outcome);
    } else {
      if (program.numbers() != (outcome == "handled" ? expected.after : expected.before))
        return str(outcome, ", but the parameters are neither as before nor stepped");
      if (outcome != "handled" && (step() != "handled" || program.numbers() != expected.after))
        return str(outcome, ", but the next step is wrong");
    }
  }
  if (outcome == "lost") return outcome;
  const Counts left = alive();
  for (const Device d : devices())
    if (memory_stats(d).in_use != 0)
      return str(outcome, ", but ", memory_stats(d).in_use, " bytes leak on ", d);
  for (const auto& [what, count] : left) {
    const auto usual = expected.alive.find(what);
    if (const int most = usual == expected.alive.end() ? 0 : usual->second; count > most)
      return str(outcome, ", but ", count, " of ", what, " live, not ", most);
  }
  const std::string found = test::findings();
  return found.empty() ? outcome : str(outcome, ", with a report: ", found);
}

constexpr int kDevices = 2;

/// Returns the parameters after `steps` steps.
std::string after_steps(int steps) {
  return test::in_child(kDevices, [steps] {
    Program program;
    for (int i = 0; i < steps; ++i) program.step();
    return program.numbers();
  });
}
Counts usually_alive() {
  std::istringstream text(test::in_child(kDevices, [] {
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
constexpr cudaError_t kSticky[] = {cudaErrorIllegalAddress,
                                   cudaErrorLaunchFailure,
                                   cudaErrorECCUncorrectable,
                                   cudaErrorLaunchTimeout,
                                   cudaErrorAssert,
                                   cudaErrorHardwareStackError,
                                   cudaErrorIllegalInstruction,
                                   cudaErrorMisalignedAddress,
                                   cudaErrorInvalidAddressSpace,
                                   cudaErrorInvalidPc};

/// Returns the codes that call k of a step returns. Without BRAID_CHECK_ALL=1, each call gets one
/// of the sticky codes in turn, and every fifth call gets persistent failures.
std::vector<Code> codes_of(std::uint64_t k, bool all) {
  std::vector<Code> codes{{cudaErrorMemoryAllocation}, {cudaErrorInvalidValue}};
  for (std::size_t i = 0; i < std::size(kSticky); ++i)
    if (all || i == k % std::size(kSticky)) codes.push_back({kSticky[i]});
  if (all || k % 5 == 0)
    for (const cudaError_t code : {cudaErrorMemoryAllocation, cudaErrorInvalidValue})
      codes.push_back({code, true});
  return codes;
}

}  // namespace

TEST_CASE("the first 200 runtime calls of a training step fail in turn", "[failing_calls]") {
  const std::vector<std::string> states{after_steps(0), after_steps(1), after_steps(2)};
  REQUIRE(states[0].size() == (5 * 8 + 8 + 8 * 3 + 3) * sizeof(float));
  REQUIRE(states[0] != states[1]);
  REQUIRE(states[1] != states[2]);
  const Counts usual = usually_alive();
  REQUIRE(usual.contains("stream"));
  const bool all = std::getenv("BRAID_CHECK_ALL") && *std::getenv("BRAID_CHECK_ALL") == '1';
  int cases = 0;
  std::map<std::string, int> outcomes;
  for (const std::size_t steps : {0, 1}) {
    std::uint64_t k = 1;
    for (bool reached = true; reached && k <= 200; ++k) {
      if (!test::in_part(k)) continue;
      for (const Code& code : codes_of(k, all)) {
        const Expected expected{states[steps], states[steps + 1], usual};
        const std::string text = test::in_child(kDevices, [&] {
          return str(failing_call(k, code, steps == 1, expected), "|", simt::failed_function());
        });
        const std::string outcome = text.substr(0, text.rfind('|'));
        if (!(reached = outcome != "not reached")) break;
        INFO((steps == 1 ? "second" : "first")
             << " step, call " << k << ", of " << text.substr(text.rfind('|') + 1) << ", returns "
             << cudaGetErrorName(code.code) << (code.persistent ? " for ever" : "") << ": "
             << outcome);
        CHECK((outcome == "handled" || outcome == "lost" || outcome == "thrown" ||
               outcome == "out of memory"));
        ++cases;
        ++outcomes[outcome];
      }
    }
    CHECK(k == 201);  // a step has at least that many calls
  }
  CHECK(outcomes["out of memory"] > 0);
  CHECK(outcomes["thrown"] > 0);
  CHECK(outcomes["lost"] > 0);
  std::cout << "SHOWS: " << cases
            << " runtime calls failed, numbers 1 to 200 of two steps: " << outcomes["thrown"]
            << " exceptions, " << outcomes["out of memory"] << " out of memory, "
            << outcomes["lost"] << " device lost, " << outcomes["handled"] << " done without\n";
}
