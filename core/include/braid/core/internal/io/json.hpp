#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The parts of JSON (RFC 8259) that Braid's file formats use. The caller states what must come
// next, so nothing recurses.
namespace braid::io {

/// Returns the length of the first character in bytes, and writes its code point. Returns 0 if the
/// text is empty or does not start with well-formed UTF-8 (no overlong forms, no surrogates).
[[nodiscard]] std::size_t first_utf8(std::string_view text, std::uint32_t& code) noexcept;

/// Whether all characters are well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Text of a file, for a message: in quotes, at most 64 bytes of it, everything but printable ASCII
/// escaped.
[[nodiscard]] std::string quoted(std::string_view text);

/// Appends a character as UTF-8. code must be a code point, and no surrogate.
void append_utf8(std::string& out, std::uint32_t code);

/// Appends text in quotes, escaped as JSON requires. text must be UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// Reads JSON text from front to back. Throws FormatError with the offset of the byte where it
/// failed, counted from the start of the file.
class JsonReader {
 public:
  /// `begin` is the offset of the text in the file.
  JsonReader(std::string_view text, std::uint64_t begin, const std::string& path)
      : text_(text), begin_(begin), path_(path) {}

  /// Skips white space, then reads this character; throws FormatError for another one.
  void expect(char c, std::string_view field);
  /// Skips white space, then reads this character if it is next. Returns whether it was.
  [[nodiscard]] bool accept(char c);
  /// Reads a string and resolves its escapes. Throws LimitError if it has more than `limit` bytes,
  /// FormatError if it is not valid UTF-8.
  [[nodiscard]] std::string string(std::string_view field, std::size_t limit);
  /// Reads a number of decimal digits only, without a leading zero, at most 2^63 - 1.
  [[nodiscard]] std::int64_t integer(std::string_view field);
  /// Throws FormatError if anything but spaces follows.
  void expect_padding(std::string_view field);

  /// The offset in the file of the next character.
  [[nodiscard]] std::uint64_t offset() const noexcept { return begin_ + at_; }
  /// Throws FormatError; the next characters are reported as what was read.
  [[noreturn]] void fail(std::string_view field, std::string_view expected) const;

 private:
  void skip_space() noexcept;
  [[nodiscard]] unsigned hex4(std::string_view field);
  void escape(std::string& out, std::string_view field);

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t begin_;
  const std::string& path_;
};

}  // namespace braid::io
