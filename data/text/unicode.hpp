#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The classes of characters by which GPT-2 splits text.
namespace braid::data::detail {

enum class CharClass : std::uint8_t { space, letter, number, other };

struct CodeRange {
  std::uint32_t first, last;
};
/// Ascending, beyond ASCII.
extern const std::span<const CodeRange> kLetters, kNumbers;

struct Character {
  CharClass is;
  std::size_t bytes;
};
/// Returns the first character of a text that is not empty. A byte that is not part of well-formed
/// UTF-8 is a character, of class other.
[[nodiscard]] Character first_character(std::string_view text) noexcept;

/// Returns the length in bytes of the first piece of a text that is not empty, by GPT-2's
/// expression: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
[[nodiscard]] std::size_t first_piece(std::string_view text) noexcept;

}  // namespace braid::data::detail
