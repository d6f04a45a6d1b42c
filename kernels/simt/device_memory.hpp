#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "simt/mode.hpp"

/// What the emulation knows about memory outside kernels: which ranges belong to a device, which
/// parts of them an allocator has allocated, and which operation accessed them. Called by the
/// emulation of the CUDA runtime (simt/runtime) and by the engine's allocator.
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
  int device;  ///< for pinned memory, the device that was current
};

/// Registers [p, p + bytes). Device memory starts as allocated and uninitialised. Pinned memory
/// counts as initialised, because the host's writes to it are not seen. Thread-safe. Throws
/// InternalError if the range overlaps a registered one.
void register_memory(void* p, std::size_t bytes, MemoryKind kind, int device);
/// Unregisters the range that begins at p. No operation that uses it may be running or queued.
/// Unknown pointers are ignored.
void unregister_memory(void* p);
/// Returns the range that contains p.
[[nodiscard]] std::optional<MemoryRange> find_memory(const void* p);

/// Call these when a sub-allocator allocates or frees a part of a registered range. Allocated
/// memory counts as uninitialised again. Both take effect immediately, on the state that the next
/// operation sees: if operations are queued, queue the annotation in the same stream order.
void annotate_allocated(void* p, std::size_t bytes);
void annotate_freed(void* p, std::size_t bytes);

/// Sets whether kernels of `device` may access memory of `peer`.
void set_peer_access(int device, int peer, bool allowed);

/// Sets the operation that the following run_grid, check_range and check_copy belong to. Operation
/// numbers are never reused. Operation 0 is the host, or a kernel run by launch_now; it is ordered
/// with everything.
void set_current_op(std::uint32_t op, int device);

/// Checks a read or write of [p, p + bytes) by a copy or memset of the current operation. Ignores
/// host memory that is not registered.
/// Throws  simt::Error: out of bounds of its range, freed memory, or a race with an operation that
///         is not ordered before this one
void check_range(const void* p, std::size_t bytes, bool write);
/// As check_range, for both sides of a copy. Bytes that are uninitialised in the source become
/// uninitialised in the destination.
void check_copy(void* destination, const void* source, std::size_t bytes);

namespace detail {

/// Returns true if operation `earlier` is complete before `op` starts, in the order given by
/// streams, events and host waits. The checker remembers positive answers for the length of a grid.
/// Defined by the emulation of the runtime (simt/runtime).
bool happens_before(std::uint32_t earlier, std::uint32_t op);
/// Returns `kernel relu on stream 2 of cuda:0, launched at file:line`. Defined by simt/runtime.
std::string describe_op(std::uint32_t op);
/// Reports that host code at this line of a kernel's file reads or writes memory of a device.
/// Defined by simt/runtime.
void report_host_access(int device, bool write, const std::string& file, int line);

/// Replaces happens_before and describe_op, for tests of the checker without a runtime. nullptr
/// restores the original.
void set_op_hooks(bool (*order)(std::uint32_t, std::uint32_t),
                  std::string (*describe)(std::uint32_t));

}  // namespace detail

#endif

}  // namespace braid::simt
