// Tests of process-wide state: each hidden case runs in a child process with its own environment.
#include "cuda_support.hpp"
#include "support/child.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("cuda: what the environment decides, and devices that are lost", "[process]") {
  NEEDS_DEVICES(1);
  const std::pair<const char*, std::vector<std::string>> children[] = {
      {"[.child][two]", {"BRAID_CUDA_DEVICES_PER_GPU=2"}},
      {"[.child][wrong_number]",
       {"BRAID_CUDA_DEVICES_PER_GPU=0", "BRAID_CUDA_DEVICES_PER_GPU=-1",
        "BRAID_CUDA_DEVICES_PER_GPU=65", "BRAID_CUDA_DEVICES_PER_GPU=two",
        "BRAID_CUDA_DEVICES_PER_GPU=2x"}},
      {"[.child][default]", {"BRAID_DEVICE=cpu:0"}},
#if BRAID_CUDA_SIMT
      {"[.child][no_cache]", {"BRAID_SIMT_DEVICES=1 BRAID_CUDA_CACHE=0"}},
      {"[.child][odd_cache]",
       {"BRAID_CUDA_CACHE=2", "BRAID_CUDA_CACHE=-1", "BRAID_CUDA_CACHE=off"}},
      {"[.child][siblings]",
       {"BRAID_SIMT_DEVICES=1 BRAID_CUDA_DEVICES_PER_GPU=2 BRAID_SIMT_MEMORY=64M"}},
      {"[.child][kept]", {"BRAID_SIMT_DEVICES=1"}},
      {"[.child][released]", {"BRAID_SIMT_DEVICES=1"}},
      {"[.child][lost]", {"BRAID_SIMT_DEVICES=2"}},
      {"[.child][late]", {"BRAID_SIMT_DEVICES=1 BRAID_CUDA_DEVICES_PER_GPU=2"}},
      {"[.child][many]", {"BRAID_SIMT_DEVICES=1"}},
      {"[.child][shared_loss]", {"BRAID_SIMT_DEVICES=1 BRAID_CUDA_DEVICES_PER_GPU=2"}},
      {"[.child][no_device]", {"BRAID_SIMT_DEVICES=0"}},
      {"[.child][wrong_variable]",
       {"BRAID_SIMT_DEVICES=abc", "BRAID_SIMT_DEVICES=-1", "BRAID_SIMT_DEVICES=999",
        "BRAID_SIMT_FAIL=zz", "BRAID_SIMT_ORDER=sideways", "BRAID_SIMT_STREAM_ORDER=lifo",
        "BRAID_SIMT_REPORTS=loud", "BRAID_SIMT_MEMORY=12T", "BRAID_SIMT_MEMORY=99999999999G"}},
      // a driver that fails means no device, not an exception
      {"[.child][no_driver]",
       {"BRAID_SIMT_FAIL=1:35:persistent:cudaGetDeviceCount",
        "BRAID_SIMT_FAIL=1:100:persistent:cudaGetDeviceCount",
        "BRAID_SIMT_FAIL=1:3:persistent:cudaGetDeviceCount",
        "BRAID_SIMT_FAIL=1:999:persistent:cudaGetDeviceCount",
        "BRAID_SIMT_FAIL=1:46:persistent:cudaGetDeviceCount"}},
#endif
  };
  for (const auto& [filter, environments] : children)
    for (const std::string& environment : environments) {
      INFO(environment << " " << filter);
      CHECK_CHILD(environment, filter);
    }
}
