#pragma once
#include <cstddef>

namespace braid::simt::detail {

/// The address space of a large block. After its bytes are freed, the addresses stay reserved until
/// the mapping is destroyed, so that a late access cannot reach other memory.
class Mapping {
 public:
  /// Throws std::bad_alloc.
  explicit Mapping(std::size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Frees the bytes, but keeps the addresses reserved.
  void discard() noexcept;

 private:
  char* data_;
  std::size_t bytes_;
};

}  // namespace braid::simt::detail
