#include "process/pickle_text.hpp"

#include <limits>

#include <braid/core/error.hpp>

#include "report/json_text.hpp"

namespace braid::parallel {
namespace {

void append_bytes(std::string& to, std::uint64_t number, int bytes) {  // little-endian
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i) & 0xff);
}

}  // namespace

PickleText& PickleText::value(std::string_view text) {
  const std::string valid = valid_utf8(text);
  if (valid.size() > std::numeric_limits<std::int32_t>::max())
    throw ArgumentError(str("pickle: expected a text below 2 GiB, got ", valid.size(), " bytes"));
  text_ += 'X';  // BINUNICODE
  append_bytes(text_, valid.size(), 4);
  text_ += valid;
  return *this;
}

PickleText& PickleText::integer(std::int64_t number) {
  if (number >= std::numeric_limits<std::int32_t>::min() &&
      number <= std::numeric_limits<std::int32_t>::max()) {
    text_ += 'J';  // BININT
    append_bytes(text_, static_cast<std::uint64_t>(number), 4);
  } else {
    text_ += "\x8a\x08";  // LONG1 of 8 bytes
    append_bytes(text_, static_cast<std::uint64_t>(number), 8);
  }
  return *this;
}

}  // namespace braid::parallel
