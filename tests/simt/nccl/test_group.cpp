// The group below the communicator: what it refuses, and a group of one, which calls the library
// all the same.
#include <braid/core/native_device.hpp>

#include "communicator/nccl/group.hpp"
#include "nccl.hpp"
#include "support/errors.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("nccl: a library that is too old makes no communicator, a new one makes a group",
          "[nccl][group]") {
  const Scene scene;
  nccl::set_version(21200);
  CHECK_THROWS_TEXT(DeviceError,
                    "make_nccl_communicator: expected NCCL 2.17.0 or newer, got 2.12.0",
                    parallel::make_nccl_communicator(group(2)));
  nccl::set_version(23007);
  CHECK(parallel::nccl::Group(group(2), 20s).version() == 23007);
  CHECK(nccl::alive() == 0);
}

TEST_CASE(
    "nccl: a library that is too old is refused where it is opened, so that automatic goes on "
    "without it",
    "[nccl][group]") {
  const Scene scene;
  const parallel::nccl::Functions functions = parallel::nccl::stand_in(*native_device(group(1)[0]));
  parallel::nccl::require_version(functions, "libnccl.so.2");
  nccl::set_version(21605);
  CHECK_THROWS_TEXT(DeviceError, "NCCL: expected libnccl.so.2 to be 2.17.0 or newer, got 2.16.5",
                    parallel::nccl::require_version(functions, "libnccl.so.2"));
  nccl::set_version(21700);
  parallel::nccl::require_version(functions, "libnccl.so.2");
  nccl::fail_call(1, nccl::Fault::error);
  CHECK_THROWS_TEXT(DeviceError,
                    "NCCL: expected libnccl.so.2 to tell its version, got ncclInternalError (3)",
                    parallel::nccl::require_version(functions, "libnccl.so.2"));
}

TEST_CASE("nccl: a group of one calls the library for every collective, its communicator for none",
          "[nccl][group]") {
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
      CHECK(y.to(Device()).to_vector<float>() == numbers);
    }
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
  for (const auto& list : {from, sum, whole, part})
    CHECK(list[0].to(Device()).to_vector<float>() == numbers);
  communicator->check();
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: what the library refuses has its own words", "[nccl][group]") {
  const Scene scene;
  parallel::nccl::Group pair(group(2), 20s);
  const Tensor x = ones({4}, {.device = group(1)[0]});
  using Call = parallel::nccl::Call;
  // The second rank's memory is the first one's.
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

TEST_CASE("nccl: an error that only a question brings to light", "[nccl][group]") {
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
