#pragma once
// What the tests of NCCL's stand-in share.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "simt/engine/findings.hpp"
#include "simt/nccl/control.hpp"
#include "simt/runtime/control.hpp"
#include "support/catch.hpp"
#include "support/views.hpp"

namespace braid::test {

using namespace std::chrono_literals;
namespace nccl = simt::nccl;
using parallel::BufferView;
using parallel::CommunicatorKind;
using Clock = std::chrono::steady_clock;

/// What was warned since the last call, each text behind "; ".
std::string take_warnings();

inline std::vector<Device> group(int n) {
  std::vector<Device> list = devices(DeviceType::cuda);
  list.resize(static_cast<std::size_t>(n));
  return list;
}

/// What both checkers have found since the last call: of streams and kernels, and of the stand-in's
/// use. Each text behind "; ".
inline std::string all_findings() {
  std::string text = findings();
  for (const std::string& each : nccl::take_misuses()) text += str("; ", each);
  return text;
}

/// The stand-in without faults, and Braid's choice of communicators as it was, at the end of a
/// scope.
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

/// Two layers and an optimizer over some devices.
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
    for (const auto& p : parameters(model))
      for (const float v : p.detach().to(Device()).template to_vector<float>()) all.push_back(v);
    return all;
  }
};

/// The parameters after 0, 1, …, steps steps.
inline std::vector<std::vector<float>> trajectory(int steps, int devices_used = 4) {
  Program program(devices_used);
  std::vector<std::vector<float>> list{program.numbers()};
  for (int i = 0; i < steps; ++i) {
    program.step();
    list.push_back(program.numbers());
  }
  return list;
}

}  // namespace braid::test
