#pragma once
// What the emulation adds to the CUDA runtime, for host code that is built both ways: it tells the
// checker of streams about memory that the driver does not see, and asks it for reports. With the
// toolkit's headers the same functions do nothing, inline. So host code never asks which of the two
// it is compiled for.
#include <cstddef>
#include <string>

#include "simt/cuda_runtime.hpp"
#include "simt/location.hpp"
#include "simt/runtime/sticky.hpp"

#if SIMT_EMULATED

#include "simt/runtime/control.hpp"

namespace braid::simt {

/// True if devices are emulated on the CPU.
inline constexpr bool kEmulated = true;
/// The bytes after each block of a caching allocator that stay unallocated, so that the checker
/// detects accesses past the block's end.
inline constexpr std::size_t kGuardBytes = 256;
/// True if a direct copy between two devices needs cudaDeviceEnablePeerAccess. Emulated copies need
/// no access, and it stays disabled, so that a kernel that accesses another device's memory is
/// detected.
inline constexpr bool kPeerCopiesNeedAccess = false;
/// Returns the index of a device among the machine's GPUs, -1 if it is none of them.
[[nodiscard]] constexpr int real_gpu(int) noexcept { return -1; }

}  // namespace braid::simt

#else

namespace braid::simt {

inline constexpr bool kEmulated = false;
inline constexpr std::size_t kGuardBytes = 0;
inline constexpr bool kPeerCopiesNeedAccess = true;
[[nodiscard]] constexpr int real_gpu(int ordinal) noexcept { return ordinal; }

// See simt/runtime/control.hpp.
inline void annotate_allocated(void*, std::size_t, cudaStream_t, Location = {}) {}
inline void annotate_freed(void*, std::size_t, cudaStream_t, Location = {}) {}
inline bool host_read(const void*, std::size_t, Location = {}) { return true; }
[[nodiscard]] inline std::string environment_error() { return {}; }
[[nodiscard]] inline std::string report_of_call() { return {}; }
[[nodiscard]] inline std::string report_of_loss(int) { return {}; }

}  // namespace braid::simt

#endif
