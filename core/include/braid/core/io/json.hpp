#pragma once
#include <cstdint>
#include <string>
#include <string_view>

// The parts of JSON (RFC 8259) that Braid's file formats are made of: the caller says what has to
// come next, so nothing recurses.
namespace braid::io {

/// Well-formed UTF-8 (no overlong forms, no surrogates).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Text of a file, for a message: in quotes, at most 64 bytes of it, everything but printable ASCII
/// escaped.
[[nodiscard]] std::string quoted(std::string_view text);

/// Appends text in quotes, escaped as JSON wants it. text is UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// Reads JSON text from front to back. Throws FormatError with the byte where it failed, counted
/// from the start of the file.
class JsonReader {
 public:
  /// `begin`: where in the file the text stands.
  JsonReader(std::string_view text, std::uint64_t begin, const std::string& path)
      : text_(text), begin_(begin), path_(path) {}

  /// Skips white space, then takes this character; FormatError if there is another one.
  void expect(char c, std::string_view field);
  /// Skips white space, then takes this character if it comes next.
  [[nodiscard]] bool accept(char c);
  /// A string of at most `limit` bytes (else LimitError), escapes resolved, valid UTF-8.
  [[nodiscard]] std::string string(std::string_view field, std::size_t limit);
  /// A number of decimal digits alone, no leading zero, at most 2^63 - 1.
  [[nodiscard]] std::int64_t integer(std::string_view field);
  /// Nothing but spaces may follow.
  void expect_padding(std::string_view field);

  /// Where in the file the next character stands.
  [[nodiscard]] std::uint64_t offset() const noexcept { return begin_ + at_; }
  /// Throws FormatError with the next characters as what was got.
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
