#pragma once
#include <cstddef>
#include <vector>

#include "simt/device.hpp"

namespace braid::simt {

/// An array in the shared memory of the running block.
struct SharedSlot {
  const detail::SharedArray* array;  ///< nullptr: the dynamic array
  char* begin;
  std::size_t bytes;
  const char* name;
  std::size_t element;
};

/// The shared memory of the running block: arrays with red zones between them. An array is filled
/// with NaN when the block first uses it.
class Arena {
 public:
  Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Removes the arrays of the previous block.
  void reset();
  /// Returns the slot of an array, or nullptr if the block has not used it yet.
  [[nodiscard]] const SharedSlot* find(const detail::SharedArray* array) const noexcept {
    for (const SharedSlot& s : slots_)
      if (s.array == array) return &s;
    return nullptr;
  }
  /// Adds an array. Returns nullptr if the arena is full.
  const SharedSlot* add(const detail::SharedArray* array, std::size_t bytes, std::size_t align,
                        const char* name, std::size_t element);
  /// The arrays' sizes with the padding of their alignments, without red zones.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] bool holds(const void* p) const noexcept {
    return static_cast<std::size_t>(static_cast<const char*>(p) - memory_) < bytes();
  }
  [[nodiscard]] const char* begin() const noexcept { return memory_; }
  [[nodiscard]] std::size_t bytes() const noexcept;
  [[nodiscard]] const std::vector<SharedSlot>& slots() const noexcept { return slots_; }

 private:
  char* memory_;
  std::size_t end_ = 0, used_ = 0;
  std::vector<SharedSlot> slots_;
};

}  // namespace braid::simt
