// Tests of NCCL over all GPUs, at least one: a group of one calls the library too. The SIMT build
// uses the fake NCCL; tests/simt/nccl has its other tests.
#include <chrono>
#include <iostream>
#include <memory>
#include <set>

#include <braid/core/native_device.hpp>

#include "communicator/nccl/group.hpp"
#include "cuda_support.hpp"

using namespace braid;
using namespace braid::test;
using parallel::nccl::Call;
using parallel::nccl::Group;

namespace {

constexpr std::chrono::minutes kTimeout{1};

/// Returns the first device of each GPU.
std::vector<Device> gpus() {
  std::vector<Device> list;
  std::set<int> seen;
  for (const Device d : devices(DeviceType::cuda))
    if (seen.insert(native_device(d)->gpu()).second) list.push_back(d);
  return list;
}

/// Returns null and prints a line that `./dev gpu` shows if the library is missing or too old.
std::unique_ptr<Group> open_group(const std::vector<Device>& on) {
  try {
    return std::make_unique<Group>(on, kTimeout);
  } catch (const DeviceError& e) {
    std::cout << "SKIP(" << e.what() << ")\n";
    return nullptr;
  }
}

std::vector<Call> calls(Call::Kind kind, const std::vector<Tensor>& send,
                        const std::vector<Tensor>& recv, std::int64_t count) {
  std::vector<Call> list;
  for (std::size_t rank = 0; rank < send.size(); ++rank)
    list.push_back({kind, rank, send[rank].id()->data(), recv[rank].id()->data(),
                    static_cast<std::size_t>(count), parallel::nccl::kFloat32});
  return list;
}

bool all_are(const Tensor& t, double value) {
  return equal(t.to(Device()), full({t.numel()}, value, {.dtype = DType::float32}));
}

}  // namespace

TEST_CASE("nccl: init, every collective, a question for errors, abort and end, twice", "[nccl]") {
  NEEDS_DEVICES(1);
  const std::vector<Device> on = gpus();
  const auto n = static_cast<std::int64_t>(on.size());
  constexpr std::int64_t kCount = 1 << 16;
  for (int round = 0; round < 2; ++round) {
    INFO("round " << round);
    const std::unique_ptr<Group> group = open_group(on);
    if (!group) return;
    std::vector<Tensor> x, y, whole;
    for (const Device d : on) {
      x.push_back(filled(1.5, d.index(), {kCount * n}));
      y.push_back(filled(-1, d.index(), {kCount}));
      whole.push_back(filled(-1, d.index(), {kCount * n}));
    }
    group->check();
    using enum Call::Kind;
    const double sum = 1.5 * static_cast<double>(n);
    const std::tuple<const char*, Call::Kind, std::vector<Tensor>, std::vector<Tensor>, double>
        all[] = {{"broadcast", broadcast, x, y, 1.5},
                 {"all_reduce", all_reduce, y, y, sum},
                 {"reduce_scatter", reduce_scatter, x, y, sum},
                 {"all_gather", all_gather, y, whole, sum}};
    for (const auto& [name, kind, send, recv, expected] : all) {
      INFO(name);
      group->run(name, calls(kind, send, recv, kCount));
      for (const Tensor& t : recv) CHECK(all_are(t, expected));
    }
    group->run("reduce", calls(reduce, x, whole, kCount));
    CHECK(all_are(whole[0].narrow(0, 0, kCount).contiguous(), sum));
    // Work queued before a collective completes before it, and the collective before later work.
    // The program itself never waits.
    for (int i = 0; i < 20; ++i) {
      for (const Tensor& t : y) t.fill_(i);
      group->run("all_reduce", calls(Call::Kind::all_reduce, y, y, kCount));
      for (const Tensor& t : y) t.add_(1);
    }
    for (const Tensor& t : y) CHECK(all_are(t, 19 * static_cast<double>(n) + 1));
    group->check();
    if (round == 0)
      std::cout << "SHOWS: NCCL " << parallel::nccl::version_text(group->version()) << ": " << n
                << " rank(s), every collective\n";
    if (round == 1) {
      group->abort();
      group->abort();
      CHECK_THROWS_AS(group->check(), CommAbortedError);
      CHECK_THROWS_AS(group->run("all_reduce", calls(Call::Kind::all_reduce, y, y, kCount)),
                      CommAbortedError);
      CHECK(all_are(y[0], 19 * static_cast<double>(n) + 1));
    }
  }
}
