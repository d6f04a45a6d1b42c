#include <braid/kernels/internal/backends.hpp>

#include "cpu/runtime/cpu_backend.hpp"
#if BRAID_WITH_CUDA
#include "cuda/runtime/make_backend.hpp"
#endif

namespace braid {

std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices) {
  std::vector<std::unique_ptr<Backend>> list;
  list.push_back(std::make_unique<cpu::CpuBackend>(cpu_devices));
#if BRAID_WITH_CUDA
  list.push_back(cuda::make_backend());
#endif
  return list;
}

}  // namespace braid
