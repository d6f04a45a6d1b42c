// Every runtime call of a training step fails in turn. What is documented then happens: an exception of ours, or the call was one that can be done without;
// parameters as before the step, or the device is lost; nothing leaks; and the next step, where the device still works, is right.
#include <cstdlib>
#include <cstring>
#include <iostream>
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

/// Two steps of a model on two devices: what they need is made before, so that a step is calls of the engine alone.
struct Program {
  parallel::DataParallel<Net> model{Net()};
  optim::SGD optimizer;
  Tensor x, labels;

  Program() : optimizer((to(model, default_device()), parameters(model)), {.lr = 0.1, .momentum = 0.9}) {
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
      for (const float v : p.detach().to(Device("cpu")).template to_vector<float>()) all.push_back(v);
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
    return e.name.starts_with("cudaError") ? "thrown" : str("an error without its code's name: ", e.what());
  } catch (const std::exception& e) {
    return str("an exception of another kind: ", e.what());
  }
}

/// One case; `warm`: one step is done before, so that every cache is filled.
std::string failing_call(std::uint64_t k, cudaError_t code, bool warm, const std::vector<float>& before, const std::vector<float>& after) {
  std::string outcome;
  {
    Program program;
    if (warm) program.step();
    const std::vector<float> start = program.numbers();
    if (start != before) return "the start is another one";
    simt::fail_call(k, code);
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
    if (outcome == "lost") {
      if (!simt::sticky(code)) return "a device lost for a code that is not sticky";
      try {
        program.step();
        return "a lost device that works";
      } catch (...) {
        if (const std::string again = kind_of(std::current_exception()); again != "lost") return str("a lost device, then ", again);
      }
    } else {
      if (simt::sticky(code) && outcome != "handled") return str("sticky, but ", outcome);
      if (simt::sticky(code)) {  // the call's result was not looked at, or came too late: the device must say so at the next use
        try {
          program.step();
          return "sticky, and the next step passes";
        } catch (...) {
          outcome = kind_of(std::current_exception());
          if (outcome != "lost") return str("sticky, then ", outcome);
        }
      } else {
        const std::vector<float> now = program.numbers();
        if (now != (outcome == "handled" ? after : before)) return str(outcome, ", but the parameters are neither as before nor stepped");
        if (outcome != "handled") {
          program.step();
          if (program.numbers() != after) return str(outcome, ", but the next step is wrong");
        }
      }
    }
  }
  if (outcome != "lost") {
    for (const Device d : devices()) {
      synchronize(d);
      empty_cache(d);
      if (memory_stats(d).in_use != 0) return str(outcome, ", but ", memory_stats(d).in_use, " bytes leak on ", d);
    }
    for (const simt::LiveObject& object : simt::live_objects())
      if (object.what == "device memory") return str(outcome, ", but this leaks: ", object.text);
    for (const simt::Report& report : simt::take_reports()) return str(outcome, ", with a report: ", report.text);
  }
  return outcome;
}

void setup() {
  setenv("BRAID_SIMT_DEVICES", "2", 1);
  unsetenv("BRAID_DEVICE");
}

std::string join(const std::vector<float>& numbers) { return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)); }
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

}  // namespace

TEST_CASE("each of the first 200 runtime calls of a training step fails in turn", "[simt][failing_calls]") {
  const std::vector<std::vector<float>> states{in_child_after(0), in_child_after(1), in_child_after(2)};
  REQUIRE(states[0].size() == 5 * 8 + 8 + 8 * 3 + 3);
  REQUIRE(states[0] != states[1]);
  REQUIRE(states[1] != states[2]);
  struct Code {
    cudaError_t code;
    const char* name;
  };
  const Code codes[] = {{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
                        {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
                        {cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
                        {cudaErrorLaunchFailure, "cudaErrorLaunchFailure"}};
  const bool all = std::getenv("BRAID_CHECK_ALL") && *std::getenv("BRAID_CHECK_ALL") == '1';
  int cases = 0, lost = 0, thrown = 0, handled = 0, memory = 0;
  std::uint64_t furthest = 0;
  for (const bool warm : {false, true}) {
    for (const Code& code : codes) {
      if (warm && !all && code.code == cudaErrorLaunchFailure) continue;
      for (std::uint64_t k = 1; k <= 200; ++k) {
        const std::string outcome = test::in_child([&] {
          setup();
          return failing_call(k, code.code, warm, states[warm ? 1 : 0], states[warm ? 2 : 1]);
        });
        if (outcome == "not reached") break;
        INFO((warm ? "second" : "first") << " step, call " << k << " returns " << code.name << ": " << outcome);
        CHECK((outcome == "handled" || outcome == "lost" || outcome == "thrown" || outcome == "out of memory"));
        ++cases;
        lost += outcome == "lost";
        thrown += outcome == "thrown";
        memory += outcome == "out of memory";
        handled += outcome == "handled";
        furthest = std::max(furthest, k);
      }
    }
  }
  CHECK(furthest >= 20);
  CHECK(memory > 0);
  CHECK(thrown > 0);
  CHECK(lost > 0);
  std::cout << "SHOWS: " << cases << " runtime calls failed (up to number " << furthest << " of a step): " << thrown << " exceptions, " << memory
            << " out of memory, " << lost << " device lost, " << handled << " done without\n";
}
