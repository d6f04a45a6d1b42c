// Splits text into the pieces within which GPT-2 merges bytes.
#include <algorithm>

#include <braid/core/internal/io/json.hpp>

#include "text/unicode.hpp"

namespace braid::data::detail {
namespace {

bool has(std::span<const CodeRange> table, std::uint32_t code) noexcept {
  const auto at = std::upper_bound(table.begin(), table.end(), code,
                                   [](std::uint32_t c, const CodeRange& r) { return c < r.first; });
  return at != table.begin() && code <= std::prev(at)->last;
}

/// \s: the characters of Unicode's White_Space.
bool is_space(std::uint32_t c) noexcept {
  return (c >= 0x9 && c <= 0xd) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

CharClass class_of(std::uint32_t c) noexcept {
  if (is_space(c)) return CharClass::space;
  if (c < 0x80) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::letter;
    return c >= '0' && c <= '9' ? CharClass::number : CharClass::other;
  }
  if (has(kLetters, c)) return CharClass::letter;
  return has(kNumbers, c) ? CharClass::number : CharClass::other;
}

/// Returns the length of the characters of this class at the start of the text, and that of the
/// last one of them.
struct Run {
  std::size_t bytes = 0, last = 0;
};
Run run_of(CharClass is, std::string_view text) noexcept {
  Run run;
  while (run.bytes < text.size()) {
    const Character c = first_character(text.substr(run.bytes));
    if (c.is != is) break;
    run.bytes += c.bytes;
    run.last = c.bytes;
  }
  return run;
}

}  // namespace

Character first_character(std::string_view text) noexcept {
  std::uint32_t code = 0;
  const std::size_t bytes = io::first_utf8(text, code);
  if (bytes == 0) return {CharClass::other, 1};
  return {class_of(code), bytes};
}

std::size_t first_piece(std::string_view text) noexcept {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  const CharClass first = first_character(text).is;
  if (first != CharClass::space) return run_of(first, text).bytes;
  if (text.size() > 1 && text[0] == ' ') {
    const std::string_view rest = text.substr(1);
    if (const CharClass next = first_character(rest).is; next != CharClass::space)
      return 1 + run_of(next, rest).bytes;
  }
  // The last of several spaces before another character belongs to the next piece.
  const Run spaces = run_of(CharClass::space, text);
  const bool one = spaces.bytes == spaces.last;
  return spaces.bytes == text.size() || one ? spaces.bytes : spaces.bytes - spaces.last;
}

}  // namespace braid::data::detail
