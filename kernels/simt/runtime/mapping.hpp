#pragma once
#include <cstddef>

namespace braid::simt::detail {

/// Address space of a large block. Once its bytes are gone, the addresses stay taken until the
/// mapping ends, so that a late use meets nobody else's memory.
class Mapping {
 public:
  /// Throws std::bad_alloc.
  explicit Mapping(std::size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Gives the bytes back, not the addresses.
  void discard() noexcept;

 private:
  char* data_;
  std::size_t bytes_;
};

}  // namespace braid::simt::detail
