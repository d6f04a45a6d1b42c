#include "process/store_wire.hpp"

#include <sys/random.h>

#include <cerrno>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/sha256.hpp>

namespace braid::parallel::process::wire {

void put_u32(std::string& to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to += static_cast<char>(value >> (8 * i));
}

void put_u64(std::string& to, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) to += static_cast<char>(value >> (8 * i));
}

void put_text(std::string& to, std::string_view text) {
  put_u32(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

std::string_view Reader::take(std::size_t bytes) {
  if (bytes > rest_.size()) {
    bad_ = true;
    rest_ = {};
    return {};
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::uint8_t Reader::u8() {
  const std::string_view b = take(1);
  return b.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(b[0]);
}

std::uint32_t Reader::u32() {
  std::uint32_t value = 0;
  const std::string_view b = take(4);
  for (std::size_t i = 0; i < b.size(); ++i)
    value |= std::uint32_t{static_cast<std::uint8_t>(b[i])} << (8 * i);
  return value;
}

std::uint64_t Reader::u64() {
  std::uint64_t value = 0;
  const std::string_view b = take(8);
  for (std::size_t i = 0; i < b.size(); ++i)
    value |= std::uint64_t{static_cast<std::uint8_t>(b[i])} << (8 * i);
  return value;
}

std::string_view Reader::text(std::size_t longest) {
  const std::uint32_t length = u32();
  if (length > longest) {
    bad_ = true;
    return {};
  }
  return take(length);
}

std::string random_bytes() {
  std::string bytes(kNonce, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n < 0 && errno != EINTR)
      throw CommError(str("store: expected random bytes of the system, got error ", errno));
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return bytes;
}

std::string proof(std::string_view token, std::string_view who, std::string_view server_nonce,
                  std::string_view client_nonce, std::uint32_t rank, std::uint32_t size) {
  std::string text(who);
  text += server_nonce;
  text += client_nonce;
  put_u32(text, rank);
  put_u32(text, size);
  const auto digest = hmac_sha256(token, text);
  return {digest.begin(), digest.end()};
}

void check_token(const Address& address, std::string_view token, const char* what) {
  if (address.loopback || token.size() >= kLeastToken) return;
  throw ArgumentError(str("store: expected a token of at least ", kLeastToken,
                          " characters (BRAID_TOKEN, the same on all ranks) to ", what, " ",
                          address.text, ", got ",
                          token.empty() ? std::string("none") : std::to_string(token.size())));
}

bool same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
  return differs == 0;
}

}  // namespace braid::parallel::process::wire
