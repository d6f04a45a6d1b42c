#pragma once
#include "cpu/simd/kernels.hpp"

// Parts of table entries that are in separate files; the entries' files call them.
namespace braid::cpu::BRAID_ISA {

void unary_function(const UnaryArgs& args, Stream& stream);
/// `scalar` is the missing operand as an element of the dtype.
void binary_function(const BinaryArgs& args, const void* scalar, Stream& stream);

}  // namespace braid::cpu::BRAID_ISA
