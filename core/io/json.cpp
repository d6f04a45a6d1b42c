#include <braid/core/internal/io/json.hpp>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/checked.hpp>

namespace braid::io {
namespace {

constexpr std::size_t kShownBytes = 64;

constexpr char kHex[] = "0123456789abcdef";

}  // namespace

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::size_t first_utf8(std::string_view text, std::uint32_t& code) noexcept {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t more = 0;
  std::uint32_t least = 0;
  code = lead;
  if (lead < 0x80) more = 0;
  else if (lead >= 0xc2 && lead < 0xe0) more = 1, code = lead & 0x1fu, least = 0x80;
  else if (lead >= 0xe0 && lead < 0xf0) more = 2, code = lead & 0x0fu, least = 0x800;
  else if (lead >= 0xf0 && lead < 0xf5) more = 3, code = lead & 0x07u, least = 0x10000;
  else return 0;
  if (more >= text.size()) return 0;
  for (std::size_t k = 1; k <= more; ++k) {
    const auto next = static_cast<unsigned char>(text[k]);
    if ((next & 0xc0u) != 0x80u) return 0;
    code = (code << 6) | (next & 0x3fu);
  }
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  return more + 1;
}

bool is_utf8(std::string_view text) noexcept {
  std::uint32_t code = 0;
  while (!text.empty()) {
    const std::size_t bytes = first_utf8(text, code);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') out += c;
    else out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
  }
  out += '"';
  if (text.size() > kShownBytes) out += "...";
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out.append(1, '\\').append(1, c);
    else if (byte < 0x20) out.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    else out += c;
  }
  out += '"';
}

void JsonReader::fail(std::string_view field, std::string_view expected) const {
  const std::string got =
      at_ >= text_.size() ? "the end of the header" : quoted(text_.substr(at_, 16));
  throw FormatError(path_, static_cast<std::int64_t>(offset()), std::string(field),
                    std::string(expected), got);
}

void JsonReader::skip_space() noexcept {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

bool JsonReader::accept(char c) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char c, std::string_view field) {
  if (!accept(c)) fail(field, str("'", c, "'"));
}

unsigned JsonReader::hex4(std::string_view field) {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    unsigned digit = 0;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
    else fail(field, "four hexadecimal digits after \\u");
    code = code * 16 + digit;
    ++at_;
  }
  return code;
}

void JsonReader::escape(std::string& out, std::string_view field) {
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  switch (c) {
    case '"':
    case '\\':
    case '/': out += c; break;
    case 'b': out += '\b'; break;
    case 'f': out += '\f'; break;
    case 'n': out += '\n'; break;
    case 'r': out += '\r'; break;
    case 't': out += '\t'; break;
    case 'u': {
      ++at_;
      std::uint32_t code = hex4(field);
      if (code >= 0xdc00 && code < 0xe000) fail(field, "a high surrogate before the low one");
      if (code >= 0xd800 && code < 0xdc00) {
        if (text_.substr(at_, 2) != "\\u") fail(field, "a low surrogate after the high one");
        at_ += 2;
        const std::uint32_t low = hex4(field);
        if (low < 0xdc00 || low >= 0xe000) fail(field, "a low surrogate after the high one");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(out, code);
      return;
    }
    default: fail(field, "one of \" \\ / b f n r t u after a backslash");
  }
  ++at_;
}

std::string JsonReader::string(std::string_view field, std::size_t limit) {
  if (!accept('"')) fail(field, "a string");
  const std::uint64_t first = offset();
  std::string out;
  while (true) {
    if (at_ >= text_.size()) fail(field, "the end of the string");
    const char c = text_[at_];
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < 0x20) fail(field, "no control character in a string");
    ++at_;
    if (c == '\\') escape(out, field);
    else out += c;
    if (out.size() > limit)
      throw LimitError(path_, static_cast<std::int64_t>(first), std::string(field),
                       str("at most ", limit, " bytes"), "a longer string");
  }
  ++at_;
  if (!is_utf8(out))
    throw FormatError(path_, static_cast<std::int64_t>(first), std::string(field), "valid UTF-8",
                      quoted(out));
  return out;
}

std::int64_t JsonReader::integer(std::string_view field) {
  skip_space();
  constexpr std::string_view kExpected = "a whole number from 0 to 2^63 - 1 in decimal digits";
  const std::size_t first = at_;
  std::int64_t value = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    if (!checked_mul<std::int64_t>(value, 10, value) ||
        !checked_add<std::int64_t>(value, text_[at_] - '0', value)) {
      at_ = first;
      fail(field, kExpected);
    }
    ++at_;
  }
  const bool leading_zero = at_ - first > 1 && text_[first] == '0';
  const bool more =
      at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
  if (at_ == first || leading_zero || more) {
    at_ = first;
    fail(field, kExpected);
  }
  return value;
}

void JsonReader::expect_padding(std::string_view field) {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  if (at_ < text_.size()) fail(field, "nothing but spaces after the closing brace");
}

}  // namespace braid::io
