// Gives this binary four emulated devices, except its child processes, whose environment is set by
// their parent. Records all warnings.
#include <cstdlib>
#include <mutex>

#include "nccl.hpp"

namespace {

std::mutex mutex;
std::string& texts() {
  static auto& all = *new std::string;
  return all;
}

const bool ready = [] {
  if (std::getenv("BRAID_NCCL_TESTS_CHILD") == nullptr) {
    setenv("BRAID_SIMT_DEVICES", "4", 1);
    for (const char* const name : {"BRAID_DEVICE", "BRAID_CUDA_DEVICES_PER_GPU",
                                   "BRAID_COMMUNICATOR", "NCCL_MULTI_RANK_GPU_ENABLE"})
      unsetenv(name);
  }
  braid::set_warning_handler([](std::string_view text) {
    const std::lock_guard lock(mutex);
    texts() += braid::str("; ", text);
  });
  return true;
}();

}  // namespace

std::string braid::test::take_warnings() {
  const std::lock_guard lock(mutex);
  return std::exchange(texts(), {});
}
