// The group below the communicator: what it refuses; a group of one, which calls the library
// nevertheless; and ranks that share a GPU.
#include <braid/core/internal/native_device.hpp>

#include "communicator/nccl/group.hpp"
#include "nccl.hpp"
#include "simt/engine/child.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"

using namespace braid;
using namespace braid::test;

namespace {

constexpr const char* kTwoOnOneGpu =
    "BRAID_NCCL_TESTS_CHILD=1 BRAID_SIMT_DEVICES=1 BRAID_CUDA_DEVICES_PER_GPU=2";
constexpr int kSteps = 4, kOld = 22809, kNew = 23007;

std::vector<std::vector<float>> trained(CommunicatorKind kind, int version) {
  const Scene scene(kind);
  nccl::set_version(version);
  return trajectory(kSteps, 2);
}

void check_refused(int version, const std::string& text) {
  const Scene scene;
  nccl::set_version(version);
  CHECK_THROWS_TEXT(DeviceError,
                    str("make_nccl_communicator: expected a GPU of its own for each device, got "
                        "cuda:0 and cuda:1 on GPU 0 with NCCL ",
                        text, " (2.30 and newer may share one under NCCL_MULTI_RANK_GPU_ENABLE=1)"),
                    parallel::make_nccl_communicator(group(2)));
  CHECK(nccl::alive() == 0);
}

/// By default, two devices of one GPU train over local, whatever the library supports.
void check_automatic() {
  const auto local = trained(CommunicatorKind::local, kNew);
  REQUIRE(local.front() != local.back());
  for (const int version : {kOld, kNew}) {
    INFO(version);
    const std::uint64_t before = nccl::calls();
    CHECK(trained(CommunicatorKind::automatic, version) == local);
    CHECK(nccl::calls() == before);
  }
  CHECK(all_findings() == "");
}

}  // namespace

TEST_CASE("nccl: a library that is too old is refused where it is opened, or used", "[group]") {
  const Scene scene;
  (void)native_device(group(1)[0]);  // its backend registers the fake
  const parallel::nccl::Functions functions = parallel::nccl::linked_functions();
  const auto open = [&] { parallel::nccl::require_version(functions, "libnccl.so.2"); };
  open();
  nccl::set_version(21200);
  CHECK_THROWS_TEXT(DeviceError,
                    "make_nccl_communicator: expected NCCL 2.17.0 or newer, got 2.12.0",
                    parallel::make_nccl_communicator(group(2)));
  nccl::set_version(21605);
  CHECK_THROWS_TEXT(DeviceError, "NCCL: expected libnccl.so.2 to be 2.17.0 or newer, got 2.16.5",
                    open());
  nccl::set_version(21700);
  open();
  nccl::set_version(23007);
  CHECK(parallel::nccl::Group(group(2), 20s).version() == 23007);
  CHECK(nccl::alive() == 0);
  nccl::fail_call(1, nccl::Fault::error);
  CHECK_THROWS_TEXT(DeviceError,
                    "NCCL: expected libnccl.so.2 to tell its version, got ncclInternalError (3)",
                    open());
}

TEST_CASE("nccl: a group of one calls the library each time, its communicator never", "[group]") {
  const Scene scene;
  using parallel::nccl::Call;
  const Device d = group(1)[0];
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0}, {.device = d, .dtype = DType::float32}),
               none = full({4}, -1, {.device = d, .dtype = DType::float32});
  const std::vector<float> numbers{1, 2, 3, 4};
  {
    parallel::nccl::Group alone(group(1), 20s);
    CHECK(nccl::alive() == 1);
    alone.check();
    const std::pair<const char*, Call::Kind> all[] = {
        {"broadcast", Call::Kind::broadcast},
        {"reduce", Call::Kind::reduce},
        {"all_reduce", Call::Kind::all_reduce},
        {"all_gather", Call::Kind::all_gather},
        {"reduce_scatter", Call::Kind::reduce_scatter}};
    for (const auto& [name, kind] : all) {
      INFO(name);
      const Tensor y = none.clone();
      const std::uint64_t before = nccl::calls();
      alone.run(name, {{kind, 0, x.id()->data(), y.id()->data(), 4, parallel::nccl::kFloat32}});
      CHECK(nccl::calls() > before);
      CHECK(floats(y) == numbers);
    }
    INFO("to itself");
    const Tensor y = none.clone();
    alone.run("exchange", {{Call::Kind::send, 0, x.id()->data(), nullptr, 4, 7, 0},
                           {Call::Kind::recv, 0, nullptr, y.id()->data(), 4, 7, 0}});
    CHECK(floats(y) == numbers);
  }
  CHECK(nccl::alive() == 0);
  const auto communicator = parallel::make_nccl_communicator(group(1));
  CHECK(communicator->size() == 1);
  const std::uint64_t before = nccl::calls();
  const std::vector<Tensor> from{x}, sum{none.clone()}, whole{none.clone()}, part{none.clone()};
  communicator->broadcast(views_of(from));
  communicator->all_reduce(views_of(from));
  communicator->reduce(views_of(from), views_of(sum));
  communicator->all_gather(views_of(from), views_of(whole));
  communicator->reduce_scatter(views_of(from), views_of(part));
  CHECK(nccl::calls() == before);
  for (const auto& list : {from, sum, whole, part}) CHECK(floats(list[0]) == numbers);
  communicator->check();
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: what the library refuses has its own words", "[group]") {
  const Scene scene;
  parallel::nccl::Group pair(group(2), 20s);
  const Tensor x = ones({4}, {.device = group(1)[0]});
  using Call = parallel::nccl::Call;
  // The second rank's memory is on the first rank's device.
  CHECK_THROWS_TEXT(
      CommError,
      "all_reduce: expected ncclSuccess from ncclAllReduce on cuda:0, cuda:1, got "
      "ncclInvalidArgument (4): ncclAllReduce: expected memory and a "
      "stream of the rank's device",
      pair.run("all_reduce", {{Call::Kind::all_reduce, 0, x.id()->data(), x.id()->data(), 4, 7},
                              {Call::Kind::all_reduce, 1, x.id()->data(), x.id()->data(), 4, 7}}));
  CHECK_THROWS_TEXT(CommError,
                    "all_reduce: expected a communicator that works, got one that failed before: "
                    "all_reduce: expected ncclSuccess",
                    pair.run("all_reduce", {}));
  CHECK_THROWS_TEXT(CommError, "check: expected a communicator that works", pair.check());
  CHECK(nccl::alive() == 0);
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: transfers from rank to rank, in pairs", "[group]") {
  const Scene scene;
  using Call = parallel::nccl::Call;
  parallel::nccl::Group pair(group(2), 20s);
  const std::vector<Device> on = group(2);
  const Tensor a = full({4}, 1.0, {.device = on[0]}), b = full({4}, 2.0, {.device = on[1]}),
               from_b = zeros({4}, {.device = on[0]}), from_a = zeros({4}, {.device = on[1]});
  const auto send = [](std::size_t rank, const Tensor& t, std::size_t n, int to) {
    return Call{Call::Kind::send, rank, t.id()->data(), nullptr, n, 7, to};
  };
  const auto recv = [](std::size_t rank, const Tensor& t, std::size_t n, int from) {
    return Call{Call::Kind::recv, rank, nullptr, t.id()->data(), n, 7, from};
  };
  pair.run("exchange",
           {send(0, a, 4, 1), recv(0, from_b, 4, 1), send(1, b, 4, 0), recv(1, from_a, 4, 0)});
  CHECK(floats(from_a) == std::vector<float>(4, 1));
  CHECK(floats(from_b) == std::vector<float>(4, 2));
  CHECK_THROWS_TEXT(CommError, "exchange: expected ncclSuccess*ncclInvalidUsage*ncclRecv of rank 1",
                    pair.run("exchange", {send(0, a, 4, 1), recv(1, from_a, 3, 0)}));
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: an error that only a question brings to light", "[group]") {
  const Scene scene;
  const auto communicator = parallel::make_nccl_communicator(group(2));
  communicator->check();
  nccl::fail_call(1, nccl::Fault::asynchronous);
  CHECK_THROWS_TEXT(
      CommError,
      "check: expected ncclSuccess from the library on cuda:0, cuda:1, got ncclRemoteError (6)",
      communicator->check());
  CHECK(CommTimeoutError("").retryable());
  CHECK_FALSE(CommError("").retryable());
}

TEST_CASE("nccl: the communicator's waits order what is before and after it", "[nccl]") {
  for (const char* const order : {"fifo", "reverse", "random:1", "random:2", "random:3"}) {
    INFO(order);
    const std::string seen = in_child([order] {
      simt::set_stream_order(order);
      const std::vector<Device> all = group(4);
      const auto communicator = parallel::make_nccl_communicator(all);
      std::string text;
      for (int round = 0; round < 3; ++round) {
        std::vector<Tensor> x, parts, whole, piece;
        for (const Device d : all) {
          x.push_back(full({64}, d.index() + round + 0.0, {.device = d}));
          parts.push_back(full({16}, d.index() + round + 0.0, {.device = d}));
          whole.push_back(empty({64}, {.device = d}));
          piece.push_back(empty({16}, {.device = d}));
        }
        communicator->all_gather(views_of(parts), views_of(whole));
        communicator->reduce_scatter(views_of(x), views_of(piece));
        communicator->all_reduce(views_of(x));
        for (const Tensor& t : parts) t.fill_(-1);
        const BufferView sum[] = {view_of(x[0])};
        communicator->reduce(views_of(x), sum);
        communicator->broadcast(views_of(x));
        const float each = static_cast<float>(6 + 4 * round);
        for (std::size_t i = 0; i < 4; ++i) {
          if (floats(x[i] + 0) != std::vector<float>(64, 4 * each)) text += str("sum on ", i, "; ");
          if (floats(piece[i] + 0) != std::vector<float>(16, each))
            text += str("piece on ", i, "; ");
          if (floats(whole[i] + 0).at(63) != static_cast<float>(3 + round))
            text += str("whole on ", i, "; ");
        }
      }
      return text + all_findings();
    });
    CHECK(seen == "");
  }
}

// Several ranks on one GPU: NCCL permits this from 2.30 on, with NVIDIA's own variable, and Braid
// uses it only if NCCL is requested. Each setting runs in its own process, because devices are
// found once.
TEST_CASE("nccl: two ranks on one GPU need 2.30 and NVIDIA's own variable", "[group]") {
  CHECK_CHILD(kTwoOnOneGpu, "[.child][not_shared]");
  CHECK_CHILD(str(kTwoOnOneGpu, " NCCL_MULTI_RANK_GPU_ENABLE=0"), "[.child][not_shared]");
  CHECK_CHILD(str(kTwoOnOneGpu, " NCCL_MULTI_RANK_GPU_ENABLE=1"), "[.child][shared]");
}

TEST_CASE("nccl: in a child, two devices on one GPU", "[.child][not_shared]") {
  REQUIRE(device_count(DeviceType::cuda) == 2);
  check_refused(kOld, "2.28.9");
  check_refused(kNew, "2.30.7");
  check_automatic();
}

TEST_CASE("nccl: in a child, two devices on one GPU that ranks may share", "[.child][shared]") {
  REQUIRE(device_count(DeviceType::cuda) == 2);
  check_refused(kOld, "2.28.9");
  const auto local = trained(CommunicatorKind::local, kNew);
  REQUIRE(local.front() != local.back());
  const std::uint64_t before = nccl::calls();
  CHECK(trained(CommunicatorKind::nccl, kNew) == local);
  CHECK(nccl::calls() > before);
  CHECK(nccl::alive() == 0);
  CHECK(all_findings() == "");
  check_automatic();
}
