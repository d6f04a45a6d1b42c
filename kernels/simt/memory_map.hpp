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

/// What the checker remembers of 4 bytes of memory: the last write and the reads since. A thread is
/// its index in the block plus 1; see kMany. Times are ticks of the checker: one number that tells
/// operation, block and barrier interval apart.
struct alignas(64) Cell {
  std::uint32_t write_tick, read_tick;
  // of each byte; 0 nobody, kWarp + w several lanes of warp w, kMany several warps
  std::uint16_t writer[4], reader[4];
  std::uint16_t write_clock, read_clock;  // of the thread's warp barriers
  std::uint32_t read_lanes;               // where reader is kWarp + w
  std::uint32_t write_op, read_op;        // operations
  // OpSets: accesses of operations that are not ordered with these two
  std::uint32_t others;
  std::uint8_t initialised : 4, in_flight : 4;
  std::uint8_t write_bytes : 4, read_bytes : 4;  // what write_op wrote and read_op read
  std::uint8_t many_blocks : 4;                  // that read
  std::uint8_t atomic : 1;                       // the last write
  std::uint8_t many_atomics : 1;                 // by several blocks: Checker::earlier_atomics_
  Site write_site, read_site;
};
static_assert(sizeof(Cell) == 64);
inline constexpr std::uint16_t kWarp = 0x8000, kMany = 0xfffe;

/// Address space for `count` zeroed objects, which costs memory only where it is touched.
class ShadowMemory {
 public:
  explicit ShadowMemory(std::size_t bytes);
  ~ShadowMemory();
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;
  [[nodiscard]] void* data() const noexcept { return data_; }
  /// Zero again.
  void clear() noexcept;

 private:
  void* data_;
  std::size_t bytes_;
};

/// A range of memory that kernels may use: a registered allocation, or a shared array of the
/// running block.
struct Region {
  char* begin = nullptr;
  std::size_t bytes = 0;
  Cell* cells = nullptr;
  // registered memory: of each word, 4 bits for the bytes given out, 4 for those initialised
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

/// happens_before and describe_op of device_memory.hpp, or what tests have put in their place.
[[nodiscard]] bool op_happens_before(std::uint32_t earlier, std::uint32_t op);
[[nodiscard]] std::string op_description(std::uint32_t op);

/// The registered allocations. Any thread may change the map; a Region stays valid until the next
/// operation starts.
class MemoryMap {
 public:
  static MemoryMap& instance();
  void add(void* p, std::size_t bytes, MemoryKind kind, int device);
  void remove(void* p);
  [[nodiscard]] Region* find(const void* p);
  /// The last region that begins at or below p, or nullptr.
  [[nodiscard]] Region* below(const void* p);
  void set_state(void* p, std::size_t bytes, std::uint8_t state);
  void set_peer(int device, int peer, bool allowed);
  [[nodiscard]] bool peer(int device, int peer);
  /// Frees what was removed before; called when an operation starts.
  void collect();
  /// Forgets all accesses.
  void clear_cells();
  /// False for what lies below and above all device memory that there has been: most addresses of
  /// the host.
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

/// Host code of a kernel's file reads or writes p: reported where that is device memory, which a
/// host cannot reach.
void host_touches(const void* p, bool write, Site site);

}  // namespace braid::simt
