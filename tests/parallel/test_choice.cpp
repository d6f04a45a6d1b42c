// Which communicator serves a group, and what may be asked of it. What NCCL does on emulated
// devices: tests/simt/nccl.
#include <braid/core/native_device.hpp>
#include <braid/parallel/communicator.hpp>

#include "communicator/local.hpp"
#include "communicator/nccl/table.hpp"
#include "group.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

using parallel::CommunicatorKind;

namespace {

bool is_local(const std::shared_ptr<parallel::Communicator>& c) {
  return dynamic_cast<parallel::LocalCommunicator*>(c.get()) != nullptr;
}

/// The options of before, at the end of a scope.
struct Options {
  parallel::CommunicatorOptions before = parallel::communicator_options();
  ~Options() { parallel::set_communicator_options(before); }
};

}  // namespace

TEST_CASE("choice: local serves CPU devices and emulated ones, unless nccl is asked for",
          "[parallel][communicator]") {
  const Options restore;
  parallel::set_communicator_options({});  // whatever the environment says
  CHECK(is_local(parallel::communicator_over(group(device_count()))));
  parallel::set_communicator_options({.kind = CommunicatorKind::nccl});
  CHECK(is_local(parallel::communicator_over(group(1))));  // nothing is sent
  if (device_count() < 2) return;
  if (on_cpu()) {
    CHECK_THROWS_TEXT(DeviceError, "make_nccl_communicator: expected CUDA devices, got cpu:0",
                      parallel::communicator_over(group(2)));
  } else if (native_device(device(0))->gpu() == native_device(device(1))->gpu()) {
    CHECK_THROWS_TEXT(DeviceError,
                      "make_nccl_communicator: expected a GPU of its own for each device, got "
                      "cuda:0 and cuda:1 on GPU 0 with NCCL",
                      parallel::communicator_over(group(2)));
  } else {
    const auto first = parallel::communicator_over(group(2));
    CHECK_FALSE(is_local(first));
    CHECK(parallel::communicator_over(group(2)) == first);  // kept
    parallel::reset_communicators();
    CHECK(parallel::communicator_over(group(2)) != first);
  }
  parallel::set_communicator_options({.kind = CommunicatorKind::local});
  CHECK(is_local(parallel::communicator_over(group(2))));
  CHECK(parallel::communicator_over(group(2))->size() == 2);
}

TEST_CASE("choice: what cannot be is refused by text", "[parallel][communicator][errors]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "set_communicator_options: timeout: expected more than 0 s, got 0",
                    parallel::set_communicator_options({.timeout = 0}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "make_nccl_communicator: timeout: expected more than 0 s, got -1",
                    parallel::make_nccl_communicator(group(1), -1));
  CHECK_THROWS_TEXT(ArgumentError, "make_nccl_communicator: expected at least one device, got none",
                    parallel::make_nccl_communicator({}));
  CHECK_THROWS_TEXT(DeviceError, "make_nccl_communicator: expected CUDA devices, got cpu:0",
                    parallel::make_nccl_communicator({Device("cpu:0")}));
  CHECK_THROWS_TEXT(ArgumentError, "expected at least one device, got none",
                    parallel::communicator_over({}));
  const auto local = parallel::make_local_communicator(group(1));
  local->abort();  // nothing to end
  local->check();
}

TEST_CASE("choice: the environment", "[parallel][communicator]") {
  CHECK_CHILD("BRAID_COMMUNICATOR=nccl BRAID_COMMUNICATOR_TIMEOUT=7",
              "[.child][communicator][nccl]");
  CHECK_CHILD("BRAID_COMMUNICATOR=mpi", "[.child][communicator][wrong]");
  CHECK_CHILD("BRAID_COMMUNICATOR_TIMEOUT=0", "[.child][communicator][timeout]");
}
TEST_CASE("choice: in a child, nccl", "[.child][communicator][nccl]") {
  CHECK(parallel::communicator_options().kind == CommunicatorKind::nccl);
  CHECK(parallel::communicator_options().timeout == 7);
}
TEST_CASE("choice: in a child, a wrong name", "[.child][communicator][wrong]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "BRAID_COMMUNICATOR: expected automatic, local or nccl, got 'mpi'",
                    parallel::communicator_options());
}
TEST_CASE("choice: in a child, a wrong timeout", "[.child][communicator][timeout]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "BRAID_COMMUNICATOR_TIMEOUT: expected seconds from 1 to 1000000, got '0'",
                    parallel::communicator_options());
}

TEST_CASE("NCCL's table: a missing library is named, with the reason",
          "[parallel][communicator][errors]") {
  using namespace parallel::nccl;
  const char* const none[] = {"libnccl-none.so.9", "libnccl-none.so"};
  CHECK_THROWS_TEXT(
      DeviceError,
      "NCCL: expected one of libnccl-none.so.9, libnccl-none.so, got none: *libnccl-none",
      open_library(none));
  const char* const other[] = {"libc.so.6"};
  CHECK_THROWS_TEXT(DeviceError, "NCCL: expected libc.so.6 to have ncclGetVersion, got none",
                    open_library(other));
  CHECK(version_text(22809) == "2.28.9");
  CHECK(std::string(name_of(kInvalidUsage)) == "ncclInvalidUsage");
  CHECK(std::string(name_of(77)) == "a result of no known name");
}

}  // namespace braid::test::on_device
