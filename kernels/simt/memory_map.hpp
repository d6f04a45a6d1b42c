#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "simt/device_memory.hpp"
#include "simt/symbols.hpp"

namespace braid::simt {

/// What the checker records for 4 bytes of memory: the last write and the reads since. A thread is
/// recorded as its index in the block plus 1; see kMany. Times are ticks of the checker: a single
/// counter that distinguishes operations, blocks and barrier intervals.
struct alignas(64) Cell {
  std::uint32_t write_tick, read_tick;
  // of each byte; 0: nobody, kWarp + w: several lanes of warp w, kMany: several warps
  std::uint16_t writer[4], reader[4];
  std::uint16_t write_clock, read_clock;  // the thread's count of warp barriers
  std::uint32_t read_lanes;               // the lanes, where reader is kWarp + w
  std::uint32_t write_op, read_op;        // operations
  // OpSets: accesses of operations that are not ordered with these two
  std::uint32_t others;
  std::uint8_t initialised : 4, in_flight : 4;
  std::uint8_t write_bytes : 4, read_bytes : 4;  // the bytes that write_op wrote and read_op read
  std::uint8_t many_blocks : 4;                  // bytes that several blocks read
  std::uint8_t atomic : 1;                       // the last write was atomic
  std::uint8_t many_atomics : 1;                 // of several blocks: see Checker::earlier_atomics_
  std::uint8_t constant;                         // bytes that __ldg has read in this grid
  Site write_site, read_site;
};
static_assert(sizeof(Cell) == 64);
inline constexpr std::uint16_t kWarp = 0x8000, kMany = 0xfffe;

/// Zeroed memory. Physical memory is used only for the pages that are touched.
class ShadowMemory {
 public:
  explicit ShadowMemory(std::size_t bytes);
  ~ShadowMemory();
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;
  [[nodiscard]] void* data() const noexcept { return data_; }
  /// Fills the memory with zeros again.
  void clear() noexcept;

 private:
  void* data_;
  std::size_t bytes_;
};

/// A range of memory that kernels may access: a registered allocation, or a shared array of the
/// running block.
struct Region {
  char* begin = nullptr;
  std::size_t bytes = 0;
  Cell* cells = nullptr;
  // registered memory: for each word, 4 bits for allocated and 4 for initialised bytes
  std::uint8_t* state = nullptr;
  const char* name = "";  // of a shared array
  std::size_t element = 4;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  [[nodiscard]] bool shared() const noexcept { return state == nullptr; }
  [[nodiscard]] bool holds(const char* p) const noexcept {
    return static_cast<std::size_t>(p - begin) < bytes;
  }
};

/// happens_before and describe_op of device_memory.hpp, or the replacements that tests have set.
[[nodiscard]] bool op_happens_before(std::uint32_t earlier, std::uint32_t op);
[[nodiscard]] std::string op_description(std::uint32_t op);

/// The registered allocations. Thread-safe. A Region stays valid until the next operation starts.
class MemoryMap {
 public:
  static MemoryMap& instance();
  void add(void* p, std::size_t bytes, MemoryKind kind, int device);
  void remove(void* p);
  [[nodiscard]] Region* find(const void* p);
  /// Returns the last region that begins at or below p, or nullptr.
  [[nodiscard]] Region* below(const void* p);
  void set_state(void* p, std::size_t bytes, std::uint8_t state);
  void set_peer(int device, int peer, bool allowed);
  [[nodiscard]] bool peer(int device, int peer);
  /// Frees the removed entries. Called when an operation starts.
  void collect();
  /// Clears the records of all accesses.
  void clear_cells();
  /// Returns false for addresses below or above all device memory that has existed, as most host
  /// addresses are.
  [[nodiscard]] static bool may_be_device(const void* p) noexcept {
    const auto a = reinterpret_cast<std::uintptr_t>(p);
    return a >= lowest_.load(std::memory_order_relaxed) &&
           a < highest_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_relaxed);
  }

 private:
  struct Entry {
    Region region;
    std::unique_ptr<ShadowMemory> cells, state;
  };
  std::mutex mutex_;
  std::map<char*, std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Entry>> removed_;
  std::set<std::pair<int, int>> peers_;
  std::atomic<std::uint64_t> generation_{1};
  static inline constinit std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

/// Reports that host code in a kernel's file reads or writes p, if p is device memory, which the
/// host cannot access.
void host_touches(const void* p, bool write, Site site);

}  // namespace braid::simt
