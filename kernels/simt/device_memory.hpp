#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "simt/mode.hpp"

/// What the emulation knows about memory outside kernels: which ranges are a device's, which parts
/// of them an allocator has given out, and which operation touched what. Called by the host twin of
/// the CUDA runtime (simt/runtime) and by the engine's allocator.
namespace braid::simt {

#if !SIMT_EMULATED

inline void annotate_allocated(void*, std::size_t) {}
inline void annotate_freed(void*, std::size_t) {}

#else

enum class MemoryKind : std::uint8_t { device, pinned };

/// A registered range.
struct MemoryRange {
  char* begin;
  std::size_t bytes;
  MemoryKind kind;
  int device;  ///< of pinned memory: the device that was current
};

/// Makes [p, p + bytes) known. Device memory starts allocated and uninitialised, pinned memory
/// counts as initialised (the host writes it unseen). Any thread may call; the range must not
/// overlap a registered one (InternalError).
void register_memory(void* p, std::size_t bytes, MemoryKind kind, int device);
/// Forgets the range that begins at p; no operation that uses it may be running or queued. Unknown
/// pointers are ignored.
void unregister_memory(void* p);
/// The range that holds p.
[[nodiscard]] std::optional<MemoryRange> find_memory(const void* p);

/// A sub-allocator gave out, or took back, part of a registered range. Given out means: allocated
/// and uninitialised again. They take effect at once, on the state that the next operation sees:
/// where operations are queued, queue the annotation in the same stream order.
void annotate_allocated(void* p, std::size_t bytes);
void annotate_freed(void* p, std::size_t bytes);

/// Kernels of `device` may (not) use memory of `peer`.
void set_peer_access(int device, int peer, bool allowed);

/// Names the operation that the following run_grid, check_range and check_copy belong to. Numbers
/// are never reused. Operation 0 is the host, or a kernel run by launch_now: it is ordered with
/// everything.
void set_current_op(std::uint32_t op, int device);

/// A copy or memset of the current operation reads or writes [p, p + bytes). Host memory that is
/// not registered is left alone.
/// Throws  simt::Error: out of bounds of its range, freed memory, or a race with an operation that
///         is not ordered before this one
void check_range(const void* p, std::size_t bytes, bool write);
/// As check_range for both sides of a copy; what was uninitialised in the source is so in the
/// destination.
void check_copy(void* destination, const void* source, std::size_t bytes);

namespace detail {

/// True if operation `earlier` is complete, in the order of streams, events and host waits, before
/// `op` starts. Asked once per pair and grid. Defined by the host twin of the runtime
/// (simt/runtime).
bool happens_before(std::uint32_t earlier, std::uint32_t op);
/// `kernel relu on stream 2 of cuda:0, launched at file:line`. Defined by simt/runtime.
std::string describe_op(std::uint32_t op);
/// Reports that host code, at this line of a kernel's file, reads or writes memory of a device.
/// Defined by simt/runtime.
void report_host_access(int device, bool write, const std::string& file, int line);

/// Replaces the two above, for tests of the checker without a runtime; nullptr restores one.
void set_op_hooks(bool (*order)(std::uint32_t, std::uint32_t),
                  std::string (*describe)(std::uint32_t));

}  // namespace detail

#endif

}  // namespace braid::simt
