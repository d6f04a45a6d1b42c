// Copies between GPUs: peer copies where they work, otherwise through the host.
#include <vector>

#include <braid/braid.hpp>

#include "child.hpp"
#include "findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

using namespace braid;

namespace {

std::vector<std::string>& warnings() {
  static std::vector<std::string> list;
  return list;
}

/// Copies back and forth in the order of both streams, and makes one copy that is longer than the
/// ring of pinned pieces. Returns "right", or what is wrong.
std::string copies(const std::vector<Device>& on) {
  const Tensor longest = arange(1'100'000, {.dtype = DType::float32});
  if (!equal(longest.to(on[0]).to(on[1]).to(Device()), longest))
    return "wrong numbers in a long copy";
  for (const Device a : on)
    for (const Device b : on) {
      if (a == b) continue;
      for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}}) {
        Tensor x = arange(n, {.device = a, .dtype = DType::float32});
        for (int round = 0; round < 3; ++round) {
          const Tensor there = x.to(b);
          x.add_(1);  // after the copy has read it
          const Tensor back = (there * 2).to(a);
          if (!equal(back + 2, x * 2))
            return str("wrong numbers from ", a, " to ", b, ", ", n, " elements, round ", round);
        }
        x = {};  // the next x gets its memory
      }
    }
  return "right";
}

/// Returns true if f calls `function`. The call fails, and f may throw CudaError.
template <class F> bool calls(const char* function, F&& f) {
  simt::fail_call(1, cudaErrorInvalidValue, true, function);
  try {
    f();
  } catch (const CudaError&) {}
  const bool called = simt::failed_call();
  simt::fail_call(0, cudaSuccess);
  return called;
}

struct Machine {
  bool access, wrong;
};
std::string on_machine(const Machine& machine) {
  return test::in_child(3, [machine] {
    set_warning_handler([](std::string_view text) { warnings().emplace_back(text); });
    simt::set_peer_access_supported(machine.access);
    simt::set_peer_copies_wrong(machine.wrong);
    std::string text = copies(devices());
    const Tensor x = ones({100}, {.device = Device("cuda:0")});
    text += calls("cudaMemcpyPeerAsync", [&] { (void)x.to(Device("cuda:1")); })
                ? ", over the bus"
                : ", through the host";
    for (const char* const wait : {"cudaDeviceSynchronize", "cudaStreamSynchronize"})
      if (calls(wait, [&] { (void)x.to(Device("cuda:1")); })) text += str(", with ", wait);
    if (calls("cudaMalloc", [&] { (void)x.to(Device("cuda:1")); }))
      text += ", with separate memory";
    text += test::findings();
    text += str(", ", warnings().size(), " warnings");
    if (!warnings().empty()) text += str(": ", warnings().front());
    return text;
  });
}

}  // namespace

TEST_CASE("peer copies: over the bus where it works, else through the host", "[peer]") {
  CHECK(on_machine({true, false}) == "right, over the bus, 0 warnings");
  CHECK(on_machine({false, false}) == "right, through the host, 0 warnings");
  CHECK(on_machine({true, true}) ==
        "right, through the host, 3 warnings: peer copies between cuda:1 and cuda:0: expected the "
        "numbers that were sent, got others; copies between their GPUs go through the host");
}

TEST_CASE("peer copies: a split batch trains the same without peer access", "[peer]") {
  const auto losses = [](bool access) {
    return test::in_child(3, [access] {
      simt::set_peer_access_supported(access);
      parallel::DataParallel model(nn::Linear(5, 2));
      to(model, best_device());
      optim::SGD optimizer(parameters(model), {.lr = 0.1});
      std::string text;
      for (int i = 0; i < 3; ++i) {
        optimizer.zero_grad();
        const Tensor loss = exp(model(randn({30, 5}, {.device = best_device()})) * 0.5).mean();
        loss.backward();
        optimizer.step();
        text += str(loss.item<double>(), " ");
      }
      text += test::findings();
      return text;
    });
  };
  const std::string over_the_bus = losses(true);
  CHECK(over_the_bus.size() > 10);
  CHECK(losses(false) == over_the_bus);
}
