#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

/// SHA-256 (FIPS 180-4) of data added in any number of pieces.
class Sha256 {
 public:
  void add(const void* data, std::size_t bytes);
  /// Returns 64 hexadecimal digits. Do not call add() afterwards.
  [[nodiscard]] std::string hex();

 private:
  void block(const unsigned char* bytes);
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> open_{};
  std::uint64_t total_ = 0;
};

}  // namespace bench
