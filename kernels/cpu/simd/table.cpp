#include "cpu/simd/kernels.hpp"

namespace braid::cpu::BRAID_ISA {

extern const KernelTable kKernels;
constinit const KernelTable kKernels{
#define BRAID_KERNEL(name, Args) .name = &name,
#include <braid/core/internal/kernels.def>
};

}  // namespace braid::cpu::BRAID_ISA
