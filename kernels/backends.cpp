#include <braid/kernels/backends.hpp>

#include "cpu/runtime/cpu_backend.hpp"

namespace braid {

std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices) {
  std::vector<std::unique_ptr<Backend>> list;
  list.push_back(std::make_unique<cpu::CpuBackend>(cpu_devices));
  return list;
}

}  // namespace braid
