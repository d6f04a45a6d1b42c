#pragma once
#include <braid/core/internal/kernel_table.hpp>

// The kernels of the CUDA table, each in a .cu file named after its op. They check what the
// host can see (DTypeError, ShapeError) before they queue anything.
namespace braid::cuda {

#define BRAID_KERNEL(name, Args) void name(const Args& args, Stream& stream);
#include <braid/core/internal/kernels.def>

}  // namespace braid::cuda
