#pragma once

// The kernels of a backend. Their arguments are in kernel_args/, one header per family; code that
// only passes the table on needs none of them.
namespace braid {

class Stream;
#define BRAID_KERNEL(name, Args) struct Args;
#include <braid/core/internal/kernels.def>

/// All kernels of a backend, one line each of kernels.def: `void (*softmax)(const SoftmaxArgs&,
/// Stream&)`. If an entry is null, the backend does not have the op, and `launch` throws
/// DeviceError. A kernel is queued on the given stream (the CPU runs it immediately). It receives
/// checked arguments and does nothing for tensors without elements.
struct KernelTable {
#define BRAID_KERNEL(name, Args) void (*name)(const Args&, Stream&) = nullptr;
#include <braid/core/internal/kernels.def>
};

}  // namespace braid
