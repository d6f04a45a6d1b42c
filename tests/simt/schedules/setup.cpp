// Three emulated devices for this binary.
#include <cstdlib>

namespace {

const bool ready = [] {
  setenv("BRAID_SIMT_DEVICES", "3", 1);
  for (const char* const name :
       {"BRAID_DEVICE", "BRAID_CUDA_DEVICES_PER_GPU", "BRAID_COMMUNICATOR"})
    unsetenv(name);
  return true;
}();

}  // namespace
