#include "cpu/runtime/isa.hpp"

// The tables of simd/table.cpp, one for each compiled instruction set, and the processor features
// that each requires.
namespace braid::cpu {

#if defined(BRAID_X86)

namespace sse { extern const KernelTable kKernels; }
namespace avx2 { extern const KernelTable kKernels; }
namespace avx512 { extern const KernelTable kKernels; }

// The checks query cpuid and whether the operating system saves the registers, not the name of the
// vendor.
const std::vector<Isa>& compiled_isas() {
  static const auto& list = *new std::vector<Isa>{
      {"sse", []() noexcept { return true; }, &sse::kKernels},
      {"avx2",
       []() noexcept { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); },
       &avx2::kKernels},
      {"avx512",
       []() noexcept {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
       },
       &avx512::kKernels},
  };
  return list;
}

#else

namespace generic { extern const KernelTable kKernels; }

const std::vector<Isa>& compiled_isas() {
  static const auto& list =
      *new std::vector<Isa>{{"generic", []() noexcept { return true; }, &generic::kKernels}};
  return list;
}

#endif

}  // namespace braid::cpu
