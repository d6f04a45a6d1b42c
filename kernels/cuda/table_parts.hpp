#pragma once
#include <braid/core/kernel_table.hpp>

// Parts of a table entry that stand in files of their own; the entry's file calls them.
namespace braid::cuda {

void unary_function(const UnaryArgs& args, Stream& stream);
void binary_function(const BinaryArgs& args, Stream& stream);

}  // namespace braid::cuda
