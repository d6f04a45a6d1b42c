#include "cuda/table.hpp"

#include "cuda/kernels.hpp"

namespace braid::cuda {

const KernelTable& kernel_table() noexcept {
  static constexpr KernelTable table{
#define BRAID_KERNEL(name, Args) .name = &name,
#include <braid/core/internal/kernels.def>
  };
  return table;
}

}  // namespace braid::cuda
