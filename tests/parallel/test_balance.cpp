// The warning about GPUs that hold each other up.
#include "primitives/balance.hpp"

#include <braid/parallel/data_parallel.hpp>

#include "group.hpp"
#include "support/child.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;
using Size = NativeDevice::Size;

namespace {

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

TEST_CASE("1.5: less than 75 % of the memory, else of the multiprocessors", "[parallel][balance]") {
  CHECK(imbalance({}).empty());
  CHECK(imbalance({{1 << 20, 4}}).empty());
  CHECK(imbalance({{100, 132}, {75, 99}, {80, 120}}).empty());  // 75 % is enough
  CHECK(imbalance({{100, 132}, {74, 132}, {90, 132}}) == text("cuda:1", "memory", "cuda:0"));
  // memory first
  CHECK(imbalance({{90, 10}, {100, 132}, {74, 132}}) == text("cuda:2", "memory", "cuda:1"));
  CHECK(imbalance({{90, 98}, {100, 132}}) == text("cuda:0", "multiprocessors", "cuda:1"));
}

TEST_CASE("1.5: one warning a process, none where the rows are chosen", "[parallel][balance]") {
  // the devices of this process are alike
  CHECK(warnings_with(text("cuda:1", "memory", "cuda:0")) == 0);
  if (on_cpu()) return;
  CHECK(native_device(device(0))->size().memory > 0);
  CHECK(native_device(device(0))->size().multiprocessors > 0);
  if (emulated())  // their memory is ours to choose
    CHECK_CHILD("BRAID_SIMT_DEVICES=3 BRAID_CUDA_DEVICES_PER_GPU=1 BRAID_SIMT_MEMORY=96M:64M",
                "[.child][unequal]");
}
TEST_CASE("1.5: in a child, unequal devices", "[.child][unequal]") {
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
