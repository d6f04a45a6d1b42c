#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "process/call.hpp"

namespace braid::parallel::process {

/// What the ranks compare before each collective. A fixed size, so that it can be exchanged even if
/// the ranks are at different calls.
struct Header {
  std::uint64_t number = 0;
  std::int64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t kind = 0, op = 0, dtype = 0, dims = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::uint8_t nccl = 0;        // 1: the memory is on a GPU, and the call runs over NCCL
  std::array<char, 39> name{};  // only for texts; ends with a 0
};
static_assert(sizeof(Header) == 128);

[[nodiscard]] Header header_of(const Call& call);
/// Compares the headers of all ranks. Returns what differs; the text is the same on all ranks.
[[nodiscard]] std::optional<std::string> mismatch(std::span<const Header> headers);

}  // namespace braid::parallel::process
