#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

/// SHA-256 (FIPS 180-4) of data added in any number of pieces.
class Sha256 {
 public:
  void add(const void* data, std::size_t bytes);
  /// Ends the hash: call only one of these, once.
  [[nodiscard]] std::array<unsigned char, 32> digest();
  [[nodiscard]] std::string hex();  ///< 64 hexadecimal digits

 private:
  void block(const unsigned char* bytes);
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> open_{};
  std::uint64_t total_ = 0;
};

/// HMAC-SHA-256 (RFC 2104): proves that the key is known, without showing it.
[[nodiscard]] std::array<unsigned char, 32> hmac_sha256(std::string_view key,
                                                        std::string_view text);

}  // namespace braid
