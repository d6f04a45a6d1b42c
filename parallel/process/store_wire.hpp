#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "process/socket.hpp"
#include "process/store.hpp"

// The bytes that the store of rank 0 and the other ranks exchange. All numbers are little endian.
//
//   server: magic, nonce                         32 random bytes
//   client: magic, rank, size, nonce, proof      HMAC(token, "client", both nonces, rank, size)
//   server: 0, proof                             HMAC(token, "server", both nonces)
//       or  1, length, text                      why the rank is refused
//
// Then requests, each answered before the next one: length, op, length, key, length, a, length, b.
// Answers: length, status (0: value, 1: no value, 2: error), age in µs, value.
namespace braid::parallel::process::wire {

inline constexpr std::string_view kMagic = "BRAIDKV1";
inline constexpr std::size_t kNonce = 32, kProof = 32;
inline constexpr std::size_t kHello = 8 + kNonce, kReply = 8 + 4 + 4 + kNonce + kProof;
inline constexpr std::size_t kMaxRequest = 1 + 12 + Store::kMaxKey + 2 * Store::kMaxValue,
                             kMaxAnswer = 1 + 8 + Store::kMaxValue, kMaxRefusal = 1024;
inline constexpr std::size_t kLeastToken = 32;  // characters

enum class Op : std::uint8_t { set = 1, get, add, compare_set, append, leave };
enum class Status : std::uint8_t { value, none, error };

void put_u32(std::string& to, std::uint32_t value);
void put_u64(std::string& to, std::uint64_t value);
void put_text(std::string& to, std::string_view text);

/// Reads numbers and texts; bad() once something is missing or too long.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t u8();
  std::uint32_t u32();
  std::uint64_t u64();
  std::string_view text(std::size_t longest);
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t bytes);
  std::string_view rest_;
  bool bad_ = false;
};

/// 32 random bytes of the system.
[[nodiscard]] std::string random_bytes();
[[nodiscard]] std::string proof(std::string_view token, std::string_view who,
                                std::string_view server_nonce, std::string_view client_nonce,
                                std::uint32_t rank, std::uint32_t size);
/// Beyond loopback, a token must be as hard to guess as 32 characters of `openssl rand -hex 32`.
///
/// Throws    ArgumentError
void check_token(const Address& address, std::string_view token, const char* what);
/// Compares in a time that does not depend on the bytes.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace braid::parallel::process::wire
