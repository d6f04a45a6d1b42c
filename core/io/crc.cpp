#include <braid/core/io/crc.hpp>

#include <array>
#include <cstring>

namespace braid::io {
namespace {

/// Eight tables: t[k][b] is the remainder of byte b followed by k zero bytes. So each step
/// processes eight bytes (slicing-by-8, Kounavis & Berry 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables(std::uint32_t reflected_polynomial) {
  Tables t{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t r = byte;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1u) != 0 ? reflected_polynomial : 0u);
    t[0][byte] = r;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte)
      t[k][byte] = (t[k - 1][byte] >> 8) ^ t[0][t[k - 1][byte] & 255u];
  }
  return t;
}

constexpr Tables kCrc32 = make_tables(0xedb88320u), kCrc32c = make_tables(0x82f63b78u);

std::uint32_t remainder(const Tables& t, const void* bytes, std::size_t count,
                        std::uint32_t before) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint32_t r = ~before;
  for (; count >= 8; count -= 8, at += 8) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= r;
    r = t[7][low & 255u] ^ t[6][(low >> 8) & 255u] ^ t[5][(low >> 16) & 255u] ^ t[4][low >> 24] ^
        t[3][high & 255u] ^ t[2][(high >> 8) & 255u] ^ t[1][(high >> 16) & 255u] ^ t[0][high >> 24];
  }
  for (; count > 0; --count, ++at) r = (r >> 8) ^ t[0][(r ^ *at) & 255u];
  return ~r;
}

}  // namespace

std::uint32_t crc32(const void* bytes, std::size_t count, std::uint32_t before) noexcept {
  return remainder(kCrc32, bytes, count, before);
}
std::uint32_t crc32c(const void* bytes, std::size_t count, std::uint32_t before) noexcept {
  return remainder(kCrc32c, bytes, count, before);
}

}  // namespace braid::io
