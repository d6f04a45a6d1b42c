#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace braid::cuda {

class BlockPool;
class CudaStream;
struct Segment;

/// A part of a segment: a block in use, or free memory.
struct Part {
  char* data = nullptr;
  std::size_t size = 0;
  Segment* segment = nullptr;
  Part *before = nullptr, *after = nullptr;   // neighbours in the segment, or null
  Part *previous = nullptr, *next = nullptr;  // in the list of its class, while it is free
  bool free = false;
};

/// One driver allocation, split into parts.
struct Segment {
  char* data;
  std::size_t size;
  BlockPool* pool;  // its free memory belongs to this pool's stream
  bool small;
  Part* first;
  // true if all of it is free
  [[nodiscard]] bool whole() const noexcept { return first->free && first->after == nullptr; }
};

/// Allocates and recycles Part objects, so that a block of the cache needs no host allocation.
class Parts {
 public:
  [[nodiscard]] Part& make();  ///< throws std::bad_alloc
  void drop(Part& part) noexcept;

 private:
  std::deque<Part> all_;
  Part* spare_ = nullptr;
};

/// The free memory of one stream: a two-level segregated fit (M. Masmano, I. Ripoll, A. Crespo, J.
/// Real: "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004). It manages only
/// host data structures and does not lock.
///
/// Free parts are listed by class: one class for each multiple of 256 bytes up to 8 KiB, then
/// sixteen for each doubling. A request takes the smallest part of its own class that is large
/// enough, else one of the next class that has any. That looks at a few parts (at most 64 per
/// class) and at ten words of a bit map. The rest of the part returns to the lists. A released part
/// is merged with free neighbours immediately. Requests up to 1 MiB and larger ones have separate
/// segments, so that a long-lived small block does not fragment the memory of large ones.
class BlockPool {
 public:
  /// Sizes are multiples of this; it is the alignment of cudaMalloc.
  static constexpr std::size_t kUnit = 256;
  static constexpr std::size_t kSmall = std::size_t{1} << 20;  ///< the largest small block
  static constexpr std::size_t kLargest = std::size_t{1} << 47;

  BlockPool(CudaStream* stream, Parts& parts) noexcept : stream_(stream), parts_(parts) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Null if this memory is never used again, because the end of the work on it is unknown.
  [[nodiscard]] CudaStream* stream() const noexcept { return stream_; }
  void set_stream(CudaStream* stream) noexcept { stream_ = stream; }

  /// Takes a part of `size` bytes, a multiple of kUnit, out of the free ones; null if there is
  /// none. Throws std::bad_alloc.
  [[nodiscard]] Part* take(std::size_t size);
  /// Returns the part to the free ones.
  void put(Part& part) noexcept;
  /// Adds a segment, all of it free; `small` means for blocks up to kSmall. Throws std::bad_alloc.
  void add(void* data, std::size_t size, bool small);
  /// smallest_whole returns the smallest entirely free segment for a request of `size` bytes;
  /// largest_whole returns the largest one for any request. Both return null if there is none.
  [[nodiscard]] Segment* smallest_whole(std::size_t size) noexcept;
  [[nodiscard]] Segment* largest_whole() noexcept;
  /// True if a segment here begins at `data`.
  [[nodiscard]] bool owns(const void* data) const noexcept;
  /// Removes an entirely free segment; the caller then owns the memory.
  void remove(Segment& segment) noexcept;
  /// Moves all segments of another pool, or one of them, to this one. Throws std::bad_alloc before
  /// anything is changed.
  void adopt(BlockPool& other);
  void adopt(BlockPool& other, Segment& segment);

  [[nodiscard]] static bool is_small(std::size_t size) noexcept { return size <= kSmall; }
  [[nodiscard]] static std::size_t class_of(std::size_t size) noexcept;

 private:
  static constexpr std::size_t kClasses = 32 + 35 * 16;  // up to kLargest
  struct Lists {
    std::array<Part*, kClasses> first{};
    std::array<std::uint64_t, (kClasses + 63) / 64> filled{};
  };
  [[nodiscard]] Part* find(Lists& lists, std::size_t size) const noexcept;
  void list(Part& part) noexcept;
  void unlist(Part& part) noexcept;
  [[nodiscard]] Lists& lists_of(const Part& part) noexcept {
    return part.segment->small ? small_ : large_;
  }
  [[nodiscard]] std::size_t index_of(const Segment& segment) const noexcept;

  CudaStream* stream_;
  Parts& parts_;
  Lists small_, large_;
  std::vector<std::unique_ptr<Segment>> segments_;
};

}  // namespace braid::cuda
