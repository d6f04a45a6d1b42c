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
  Part *before = nullptr, *after = nullptr;   // what lies beside it; null at the segment's ends
  Part *previous = nullptr, *next = nullptr;  // in the list of its class, while it is free
  bool free = false;
};

/// One allocation of the driver, cut into parts.
struct Segment {
  char* data;
  std::size_t size;
  BlockPool* pool;  // whose stream its free memory follows
  bool small;
  Part* first;
  // all of it is free
  [[nodiscard]] bool whole() const noexcept { return first->free && first->after == nullptr; }
};

/// Where parts come from and go to: a block of the cache then costs no host memory of its own.
class Parts {
 public:
  [[nodiscard]] Part& make();  ///< throws std::bad_alloc
  void drop(Part& part) noexcept;

 private:
  std::deque<Part> all_;
  Part* spare_ = nullptr;
};

/// The free memory that follows one stream: a two-level segregated fit (M. Masmano, I. Ripoll, A.
/// Crespo, J. Real: "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004). Host
/// memory only; no lock of its own.
///
/// Free parts are listed by class: one for each multiple of 256 bytes up to 8 KiB, then sixteen for
/// each doubling. A request takes the smallest part that is large enough of its own class, else of
/// the next class that has any: a look at a few parts (64 at most) and at ten words of a bit map.
/// The rest of the part goes back to the lists. A part that comes back is joined with free
/// neighbours at once. Requests up to 1 MiB and larger ones have segments of their own, so that a
/// small block that lives long does not cut up the memory of large ones.
class BlockPool {
 public:
  /// sizes are multiples of it; cudaMalloc's own alignment
  static constexpr std::size_t kUnit = 256;
  static constexpr std::size_t kSmall = std::size_t{1} << 20;  ///< the largest small block
  static constexpr std::size_t kLargest = std::size_t{1} << 47;

  BlockPool(CudaStream* stream, Parts& parts) noexcept : stream_(stream), parts_(parts) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Null: nobody gets what is here, because no stream knows when it may be used.
  [[nodiscard]] CudaStream* stream() const noexcept { return stream_; }
  void set_stream(CudaStream* stream) noexcept { stream_ = stream; }

  /// A part of `size` bytes, a multiple of kUnit, that is free no more; null if there is none.
  /// Throws std::bad_alloc.
  [[nodiscard]] Part* take(std::size_t size);
  /// The part is free again.
  void put(Part& part) noexcept;
  /// A segment more, all of it free; `small`: for blocks up to kSmall. Throws std::bad_alloc.
  void add(void* data, std::size_t size, bool small);
  /// The smallest (largest) segment all of which is free, for a request of `size` bytes (of any
  /// kind); null if there is none.
  [[nodiscard]] Segment* smallest_whole(std::size_t size) noexcept;
  [[nodiscard]] Segment* largest_whole() noexcept;
  /// True if a segment here begins at `data`.
  [[nodiscard]] bool owns(const void* data) const noexcept;
  /// A whole segment leaves; the memory is the caller's.
  void remove(Segment& segment) noexcept;
  /// All segments of another pool, or one of them, come here. Throws std::bad_alloc before anything
  /// is changed.
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
