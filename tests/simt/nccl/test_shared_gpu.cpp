// Several ranks on one GPU: NCCL's from 2.30 on, under NVIDIA's own variable, and only where Braid
// is asked for NCCL. Each setting in a process of its own, as devices are found once.
#include "nccl.hpp"
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

/// Unasked, two devices of one GPU train over local, whatever the library could do.
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
