#pragma once
#include <braid/core/kernel_table.hpp>

// The CPU kernels, once for every instruction set. A file in this folder is compiled for each with
// -DBRAID_ISA=<name> and defines its kernels in `namespace braid::cpu::BRAID_ISA`; table.cpp there
// puts them in a KernelTable; runtime/isa.cpp picks one at run time.
// Rules for this folder: such a file emits no inline function or template with external linkage
// (the linker would keep one copy for all processors, perhaps the AVX-512 one): helpers live in
// unnamed namespaces or are `static`, and nothing of the standard library beyond <cstdint>,
// <cstddef> and <type_traits> is used. Errors are thrown by out-of-line functions of
// cpu/errors.hpp, loops run on cpu/runtime/parallel.hpp.
#ifndef BRAID_ISA
#error "kernels.hpp: expected BRAID_ISA to be defined (see kernels/cmake/BraidSimd.cmake)"
#endif

namespace braid::cpu::BRAID_ISA {

#define BRAID_KERNEL(name, Args) void name(const Args& args, Stream& stream);
#include <braid/core/kernels.def>

}  // namespace braid::cpu::BRAID_ISA
