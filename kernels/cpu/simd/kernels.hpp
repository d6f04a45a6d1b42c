#pragma once
#include <braid/core/kernel_table.hpp>

// The CPU kernels, once for every instruction set. A file in this folder is compiled for each with -DBRAID_ISA=<name> and defines its kernels in
// `namespace braid::cpu::BRAID_ISA`; table.cpp there puts them in a KernelTable; runtime/isa.cpp picks one at run time.
// Rules for this folder: such a file emits no inline function or template with external linkage (the linker would keep one copy for all
// processors, perhaps the AVX-512 one): helpers live in unnamed namespaces or are `static`, and nothing of the standard library beyond <cstdint>,
// <cstddef> and <type_traits> is used. Errors are thrown by out-of-line functions of cpu/errors.hpp, loops run on cpu/runtime/parallel.hpp.
#ifndef BRAID_ISA
#error "kernels.hpp: expected BRAID_ISA to be defined (see kernels/cmake/BraidSimd.cmake)"
#endif

namespace braid::cpu::BRAID_ISA {

void unary(const UnaryArgs& args, Stream& stream);
void binary(const BinaryArgs& args, Stream& stream);
void where(const WhereArgs& args, Stream& stream);
void copy(const CopyArgs& args, Stream& stream);
void fill(const FillArgs& args, Stream& stream);
void reduce(const ReduceArgs& args, Stream& stream);
void gemm(const GemmArgs& args, Stream& stream);
void gemm_pair(const GemmPairArgs& args, Stream& stream);
void softmax(const SoftmaxArgs& args, Stream& stream);
void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream);
void cross_entropy(const CrossEntropyArgs& args, Stream& stream);
void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream);
void mse(const MseArgs& args, Stream& stream);
void mse_backward(const MseBackwardArgs& args, Stream& stream);
void gather_rows(const GatherRowsArgs& args, Stream& stream);
void scatter_add_rows(const ScatterAddRowsArgs& args, Stream& stream);
void random(const RandomArgs& args, Stream& stream);
void sgd(const SgdArgs& args, Stream& stream);
void adamw(const AdamWArgs& args, Stream& stream);

}  // namespace braid::cpu::BRAID_ISA
