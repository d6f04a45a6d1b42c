#pragma once
#include <braid/core/internal/kernel_table.hpp>

// The CPU kernels, once for every instruction set. Each file in this folder is compiled for each
// instruction set with -DBRAID_ISA=<name> and defines its kernels in `namespace
// braid::cpu::BRAID_ISA`. table.cpp collects them in a KernelTable; runtime/isa.cpp picks one table
// at run time.
// Rules for this folder: a file must not emit an inline function or template with external linkage,
// because the linker would keep one copy for all processors, possibly the AVX-512 one. So helpers
// are in unnamed namespaces or `static`, and nothing of the standard library beyond <cstdint>,
// <cstddef> and <type_traits> is used. Errors are thrown by the out-of-line functions of
// cpu/errors.hpp; loops use cpu/runtime/parallel.hpp.
#ifndef BRAID_ISA
#error "kernels.hpp: expected BRAID_ISA to be defined (see kernels/cmake/BraidSimd.cmake)"
#endif

namespace braid::cpu::BRAID_ISA {

#define BRAID_KERNEL(name, Args) void name(const Args& args, Stream& stream);
#include <braid/core/internal/kernels.def>

}  // namespace braid::cpu::BRAID_ISA
