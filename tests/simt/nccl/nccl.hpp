#pragma once
// Shared by the tests that use the fake NCCL.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "simt/engine/findings.hpp"
#include "simt/nccl/control.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"
#include "support/views.hpp"

namespace braid::test {

using namespace std::chrono_literals;
namespace nccl = simt::nccl;
using parallel::BufferView;
using parallel::CommunicatorKind;
using Clock = std::chrono::steady_clock;

/// Returns the warnings since the last call, each preceded by "; ".
std::string take_warnings();

inline std::vector<Device> group(int n) {
  std::vector<Device> list = devices(DeviceType::cuda);
  list.resize(static_cast<std::size_t>(n));
  return list;
}

inline std::vector<float> floats(const Tensor& t) {
  return t.detach().to(Device()).to_vector<float>();
}
inline void append(std::vector<float>& all, const Tensor& t) {
  const std::vector<float> more = floats(t);
  all.insert(all.end(), more.begin(), more.end());
}

/// Waits until done() returns true, for 20 seconds at most.
template <class F> void wait_until(F&& done) {
  for (const auto until = Clock::now() + 20s; !done() && Clock::now() < until;)
    std::this_thread::sleep_for(1ms);
}

/// Returns the findings since the last call: those of streams and kernels, and misuses of the fake
/// NCCL. Each text is preceded by "; ".
inline std::string all_findings() {
  std::string text = findings();
  for (const std::string& each : nccl::take_misuses()) text += str("; ", each);
  return text;
}

/// At the end of its scope, resets the fake NCCL to no faults and Braid's communicator options to
/// their defaults.
struct Scene {
  explicit Scene(CommunicatorKind kind = CommunicatorKind::nccl, double timeout = 20) {
    parallel::set_communicator_options({.kind = kind, .timeout = timeout});
  }
  ~Scene() {
    nccl::fail_call(0, nccl::Fault::none);
    nccl::set_abort_hangs(false);
    nccl::release();
    nccl::set_sum(nccl::Sum::ring);
    nccl::set_version(22809);
    parallel::set_communicator_options({});
    simt::set_stream_order(simt::StreamOrder::fifo);
    (void)take_warnings();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
};

/// A model with two layers.
struct Net : nn::Module {
  nn::Linear fc1{5, 7}, fc2{7, 3};
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};

struct Program {
  parallel::DataParallel<Net> model;
  optim::SGD optimizer;
  Tensor x;
  explicit Program(int devices_used = 4, std::int64_t rows = 12)
      : model((manual_seed(3), Net()), group(devices_used)),
        optimizer((to(model, Device("cuda:0")), parameters(model)), {.lr = 0.1, .momentum = 0.9}) {
    x = randn({rows, 5}, {.device = Device("cuda:0")});
  }
  void step() {
    optimizer.zero_grad();
    exp(model(x)).mean().backward();
    optimizer.step();
  }
  [[nodiscard]] std::vector<float> numbers() const {
    std::vector<float> all;
    for (const auto& p : parameters(model)) append(all, p);
    return all;
  }
};

/// Returns the parameters after 0, 1, …, `steps` steps.
inline std::vector<std::vector<float>> trajectory(int steps, int devices_used = 4) {
  Program program(devices_used);
  std::vector<std::vector<float>> list{program.numbers()};
  for (int i = 0; i < steps; ++i) {
    program.step();
    list.push_back(program.numbers());
  }
  return list;
}

constexpr int kMostSteps = 8;

struct Outcome {
  std::string type;  // the type of our exception that was thrown, or "nothing"
  std::string text;
  std::chrono::milliseconds took{0};
  int steps = 0;          // steps that succeeded before
  bool unchanged = true;  // the failed step did not change the parameters
};

/// Runs steps of a program whose communicators are not created yet, until one fails.
inline Outcome run_until_failure(Program& program, int most = kMostSteps) {
  Outcome outcome;
  for (; outcome.steps < most; ++outcome.steps) {
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

}  // namespace braid::test
