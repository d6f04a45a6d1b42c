#include "support/on_device.hpp"

namespace braid::test {

bool emulated() {
#if defined(BRAID_CUDA_SIMT)
  return !on_cpu();
#else
  return false;
#endif
}

}  // namespace braid::test
