#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simt/location.hpp"
#include "simt/runtime/history.hpp"
#include "simt/runtime/mapping.hpp"
#include "simt/runtime/operation.hpp"

namespace braid::simt::detail {

/// The number of bytes at the start of an allocated or freed block that are all compared with the
/// accesses of kernels. Of the rest, about as many bytes again are compared, spread over what was
/// accessed. Comparing more would be slow.
inline constexpr std::size_t kCheckedHead = std::size_t{64} << 10;

enum class Place : std::uint8_t { pageable, pinned, device };

/// A range from cudaMalloc, cudaHostAlloc, cudaHostRegister or a similar call. Operations that use
/// it hold a reference, so its bytes outlive its free.
struct Allocation {
  char* base = nullptr;
  std::size_t bytes = 0, charged = 0;
  std::shared_ptr<Mapping> mapping;  ///< of a large block
  Place place = Place::device;
  int device = 0;
  bool registered = false;  ///< cudaHostRegister: the user owns the memory
  bool mapped = false;      ///< pinned memory that kernels may access: not watched
  bool async = false;       ///< from cudaMallocAsync
  bool freed = false;       ///< a free call was made
  bool unregistered = false;
  const char* call = "";
  Location where;
  const char* free_call = "";
  Location freed_where;
  OpPtr free_op;
  History history;
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();
};
using AllocationPtr = std::shared_ptr<Allocation>;

/// A large block that was freed. Its addresses are not reused for a while.
struct Gone {
  std::shared_ptr<Mapping> mapping;
  std::size_t bytes;
  int device;
  const char *call, *free_call;
  Location where, freed_where;
};

/// Pinned memory that a copy reads or writes. The host must not touch it until it knows that the
/// copy is complete.
struct Watch {
  OpPtr op;
  AllocationPtr allocation;
  char* begin;
  std::size_t bytes;
  bool written;  ///< by the copy
  bool checked;  ///< the bytes are known: the source's hash, or the pattern in the destination
  std::uint64_t hash = 0;
};

/// The memory of a device, and the devices whose memory its kernels may access.
struct DeviceMemory {
  std::size_t capacity = 0, used = 0, peak = 0;
  std::uint64_t release_threshold = 0;
  std::set<int> peers;
};

/// What is allocated, what was freed lately, and what copies have yet to read or write. Guarded by
/// the runtime's mutex.
struct Memory {
  [[nodiscard]] DeviceMemory& of(int device) { return devices[static_cast<std::size_t>(device)]; }
  [[nodiscard]] AllocationPtr find_allocation(const void* p) const;
  /// Returns the freed large block that contained p, or null.
  [[nodiscard]] const Gone* find_gone(const void* p) const;
  /// True if freed bytes are kept for a while, so that a late use finds freed memory, not unknown
  /// memory.
  [[nodiscard]] static bool keeps(const Allocation& allocation) noexcept;
  /// Puts freed memory into the quarantine, if it is kept. Returns what is no longer known, for the
  /// caller to unregister.
  [[nodiscard]] std::vector<AllocationPtr> retire(const AllocationPtr& allocation);
  /// Forgets all memory. The devices stay, with their peers.
  void clear();

  std::vector<DeviceMemory> devices;
  bool peer_supported = true;
  // live allocations, and freed ones in the quarantine
  std::map<std::uintptr_t, AllocationPtr> allocations;
  std::list<AllocationPtr> quarantine;
  std::size_t quarantine_bytes = 0;
  std::map<std::uintptr_t, Gone> gone;
  std::deque<std::uintptr_t> gone_order;  // oldest first
  std::size_t gone_bytes = 0;
  std::vector<Watch> watches;
  std::map<const void*, int> shared_bytes_of;  // by kernel: cudaFuncSetAttribute
};

/// As check_range, for the parts of [p, p + bytes) that kernels or copies have accessed, and for
/// about `most` bytes of them at most. Throws as check_range.
void check_touched(char* p, std::size_t bytes, std::size_t most);
/// check_range of the start of a block, and check_touched of the rest. Throws as check_range.
void check_block(void* p, std::size_t bytes);

}  // namespace braid::simt::detail
