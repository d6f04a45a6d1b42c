#pragma once
#include <memory>
#include <vector>

#include <braid/core/backend.hpp>

namespace braid {

/// Returns the backends of this build, in order: the CPU with `cpu_devices` logical devices, then
/// CUDA in builds with it. This is the only list of backends; a new one is a line in backends.cpp.
/// Throws DeviceError if BRAID_ISA, BRAID_CUDA_DEVICES_PER_GPU or BRAID_CUDA_CACHE has an invalid
/// value, ArgumentError if a variable of the emulation has one.
std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices);

}  // namespace braid
