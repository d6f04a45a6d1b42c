#include <braid/core/internal/io/sha256.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace braid {
namespace {

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes. long double
/// is precise enough to compute them.
std::array<std::uint32_t, 64> constants() {
  std::array<std::uint32_t, 64> k{};
  std::size_t found = 0;
  for (unsigned n = 2; found < k.size(); ++n) {
    bool prime = true;
    for (unsigned d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
    if (!prime) continue;
    const long double root = std::cbrt(static_cast<long double>(n));
    k[found++] = static_cast<std::uint32_t>(std::floor((root - std::floor(root)) * 0x1p32L));
  }
  return k;
}

}  // namespace

void Sha256::block(const unsigned char* bytes) {
  static const std::array<std::uint32_t, 64> k = constants();
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(bytes[4 * i]) << 24 |
           static_cast<std::uint32_t>(bytes[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::array<std::uint32_t, 8> s = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]),
                        majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    const std::uint32_t t1 = s[7] +
                             (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                             choose + k[i] + w[i];
    const std::uint32_t t2 =
        (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) + majority;
    std::rotate(s.begin(), s.end() - 1, s.end());
    s[0] = t1 + t2;
    s[4] += t1;
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::add(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const std::size_t at = total_ % open_.size(), n = std::min(bytes, open_.size() - at);
    std::memcpy(open_.data() + at, from, n);
    total_ += n;
    from += n;
    bytes -= n;
    if (at + n == open_.size()) block(open_.data());
  }
}

std::array<unsigned char, 32> Sha256::digest() {
  const std::uint64_t bits = total_ * 8;
  const unsigned char end = 0x80, zero = 0;
  add(&end, 1);
  while (total_ % open_.size() != 56) add(&zero, 1);
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  add(length.data(), length.size());
  std::array<unsigned char, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return bytes;
}

std::string Sha256::hex() {
  std::string text;
  for (const unsigned char byte : digest()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

std::array<unsigned char, 32> hmac_sha256(std::string_view key, std::string_view text) {
  constexpr std::size_t kBlock = 64;
  std::array<unsigned char, kBlock> inner{}, outer{};
  if (key.size() > kBlock) {
    Sha256 hash;
    hash.add(key.data(), key.size());
    const auto digest = hash.digest();
    std::copy(digest.begin(), digest.end(), inner.begin());
  } else {
    std::copy(key.begin(), key.end(), inner.begin());
  }
  outer = inner;
  for (unsigned char& byte : inner) byte ^= 0x36;
  for (unsigned char& byte : outer) byte ^= 0x5c;
  Sha256 first, second;
  first.add(inner.data(), inner.size());
  first.add(text.data(), text.size());
  const auto digest = first.digest();
  second.add(outer.data(), outer.size());
  second.add(digest.data(), digest.size());
  return second.digest();
}

}  // namespace braid
