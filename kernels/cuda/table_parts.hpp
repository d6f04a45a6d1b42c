#pragma once
#include <braid/core/kernel_table.hpp>

// Parts of table entries that are in separate files; the entries' files call them.
namespace braid::cuda {

void unary_function(const UnaryArgs& args, Stream& stream);
void binary_function(const BinaryArgs& args, Stream& stream);

}  // namespace braid::cuda
