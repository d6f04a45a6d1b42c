#pragma once
#include "cpu/simd/kernels.hpp"

// Parts of a table entry that stand in files of their own; the entry's file calls them.
namespace braid::cpu::BRAID_ISA {

void unary_function(const UnaryArgs& args, Stream& stream);
/// `scalar` is the missing operand as an element of the dtype.
void binary_function(const BinaryArgs& args, const void* scalar, Stream& stream);

}  // namespace braid::cpu::BRAID_ISA
