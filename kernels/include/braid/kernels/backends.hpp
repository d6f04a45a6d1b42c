#pragma once
#include <memory>
#include <vector>

#include <braid/core/backend.hpp>

namespace braid {

/// The backends of this build, in order: the CPU with `cpu_devices` logical devices, and CUDA in
/// builds with it. This is the one list; a new backend is a line in backends.cpp. Throws
/// DeviceError if BRAID_ISA or BRAID_CUDA_DEVICES_PER_GPU cannot be obeyed.
std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices);

}  // namespace braid
