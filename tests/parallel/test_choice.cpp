// How the communicator of a group is chosen, its options and errors, and the warning about unequal
// GPUs. tests/simt/nccl tests NCCL on emulated devices.
#include <braid/core/internal/native_device.hpp>

#include "communicator/local.hpp"
#include "communicator/nccl/table.hpp"
#include "group.hpp"
#include "primitives/balance.hpp"
#include "support/child.hpp"

namespace braid::test::on_device {

using parallel::communicator_options;
using parallel::communicator_over;
using parallel::CommunicatorKind;
using parallel::set_communicator_options;
using Size = NativeDevice::Size;

namespace {

bool is_local(const std::shared_ptr<parallel::Communicator>& c) {
  return dynamic_cast<parallel::LocalCommunicator*>(c.get()) != nullptr;
}

/// Restores the options at the end of a scope.
struct Options {
  parallel::CommunicatorOptions before = communicator_options();
  ~Options() { set_communicator_options(before); }
};

std::string imbalance(const std::vector<Size>& sizes) {
  std::vector<Device> devices;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    devices.emplace_back(DeviceType::cuda, static_cast<int>(i));
  return parallel::imbalance(devices, sizes);
}
std::string text(const std::string& weak, const std::string& what, const std::string& strong) {
  return "DataParallel: " + weak + " has less than 75 % of the " + what + " of " + strong +
         " and will hold it up: leave it out of the list of devices (or of CUDA_VISIBLE_DEVICES), "
         "or give it fewer rows (DataParallelOptions::weights)";
}

}  // namespace

TEST_CASE("choice: local serves all but GPUs, unless nccl is asked for", "[communicator]") {
  const Options restore;
  set_communicator_options({});  // independent of the environment
  CHECK(is_local(communicator_over(group(device_count()))));
  set_communicator_options({.kind = CommunicatorKind::nccl});
  CHECK(is_local(communicator_over(group(1))));  // nothing is sent
  if (device_count() < 2) return;
  if (on_cpu()) {
    CHECK_THROWS_TEXT(DeviceError, "make_nccl_communicator: expected CUDA devices, got cpu:0",
                      communicator_over(group(2)));
  } else if (native_device(device(0))->gpu() == native_device(device(1))->gpu()) {
    CHECK_THROWS_TEXT(DeviceError,
                      "make_nccl_communicator: expected a GPU of its own for each device, got "
                      "cuda:0 and cuda:1 on GPU 0 with NCCL",
                      communicator_over(group(2)));
  } else {
    const auto first = communicator_over(group(2));
    CHECK_FALSE(is_local(first));
    CHECK(communicator_over(group(2)) == first);  // kept
    parallel::reset_communicators();
    CHECK(communicator_over(group(2)) != first);
  }
  set_communicator_options({.kind = CommunicatorKind::local});
  CHECK(is_local(communicator_over(group(2))));
  CHECK(communicator_over(group(2))->size() == 2);
}

TEST_CASE("choice: what cannot be is refused by text", "[communicator][errors]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "set_communicator_options: timeout: expected more than 0 s, got 0",
                    set_communicator_options({.timeout = 0}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "make_nccl_communicator: timeout: expected more than 0 s, got -1",
                    parallel::make_nccl_communicator(group(1), -1));
  CHECK_THROWS_TEXT(ArgumentError, "make_nccl_communicator: expected at least one device, got none",
                    parallel::make_nccl_communicator({}));
  CHECK_THROWS_TEXT(DeviceError, "make_nccl_communicator: expected CUDA devices, got cpu:0",
                    parallel::make_nccl_communicator({Device("cpu:0")}));
  CHECK_THROWS_TEXT(ArgumentError, "expected at least one device, got none", communicator_over({}));
  const auto local = parallel::make_local_communicator(group(1));
  local->abort();  // no calls to end
  local->check();
}

TEST_CASE("choice: the environment", "[communicator]") {
  CHECK_CHILD("BRAID_COMMUNICATOR=nccl BRAID_COMMUNICATOR_TIMEOUT=7", "[.child][nccl]");
  CHECK_CHILD("BRAID_COMMUNICATOR=mpi", "[.child][wrong_name]");
  CHECK_CHILD("BRAID_COMMUNICATOR_TIMEOUT=0", "[.child][wrong_timeout]");
}
TEST_CASE("choice: in a child, nccl", "[.child][nccl]") {
  CHECK(communicator_options().kind == CommunicatorKind::nccl);
  CHECK(communicator_options().timeout == 7);
}
TEST_CASE("choice: in a child, a wrong name", "[.child][wrong_name]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "BRAID_COMMUNICATOR: expected automatic, local or nccl, got 'mpi'",
                    communicator_options());
}
TEST_CASE("choice: in a child, a wrong timeout", "[.child][wrong_timeout]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "BRAID_COMMUNICATOR_TIMEOUT: expected seconds from 1 to 1000000, got '0'",
                    communicator_options());
}

TEST_CASE("choice: a missing library of NCCL's is named, with the reason", "[communicator]") {
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

TEST_CASE("balance: less than 75 % of the memory, else of the multiprocessors", "[balance]") {
  CHECK(imbalance({}).empty());
  CHECK(imbalance({{1 << 20, 4}}).empty());
  CHECK(imbalance({{100, 132}, {75, 99}, {80, 120}}).empty());  // 75 % is enough
  CHECK(imbalance({{100, 132}, {74, 132}, {90, 132}}) == text("cuda:1", "memory", "cuda:0"));
  // memory has precedence
  CHECK(imbalance({{90, 10}, {100, 132}, {74, 132}}) == text("cuda:2", "memory", "cuda:1"));
  CHECK(imbalance({{90, 98}, {100, 132}}) == text("cuda:0", "multiprocessors", "cuda:1"));
}

TEST_CASE("balance: one warning a process, none where the rows are chosen", "[balance]") {
  // the devices of this process are alike
  CHECK(warnings_with(text("cuda:1", "memory", "cuda:0")) == 0);
  if (on_cpu()) return;
  CHECK(native_device(device(0))->size().memory > 0);
  CHECK(native_device(device(0))->size().multiprocessors > 0);
  if (emulated())  // their memory can be set
    CHECK_CHILD("BRAID_SIMT_DEVICES=3 BRAID_CUDA_DEVICES_PER_GPU=1 BRAID_SIMT_MEMORY=96M:64M",
                "[.child][unequal]");
}
TEST_CASE("balance: in a child, unequal devices", "[.child][unequal]") {
  const std::string warning = text("cuda:1", "memory", "cuda:0");
  const auto wrap = [](std::vector<Device> on, const DataParallelOptions& options) {
    (void)DataParallel(Net{}, on, options);
  };
  wrap({Device("cuda:1"), Device("cuda:2")}, {});  // alike
  wrap(group(1), {});
  wrap(group(3), {.weights = {3, 2, 2}});
  CHECK(warnings_with(warning) == 0);
  wrap(group(3), {});
  wrap(group(2), {});
  CHECK(warnings_with(warning) == 1);
}

}  // namespace braid::test::on_device
