#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include <braid/core/io/json.hpp>

namespace braid::parallel {

/// Returns the text as UTF-8: each byte that is not part of a well-formed character becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// Builds JSON text (RFC 8259): `json.object().key("n").value(3).end();`. The caller must open and
/// close in order. A number that is not finite becomes null.
class JsonText {
 public:
  JsonText& object() { return open('{', '}'); }
  JsonText& array() { return open('[', ']'); }
  JsonText& end() {
    text_ += closing_.back();
    closing_.pop_back();
    comma_ = true;
    return *this;
  }
  JsonText& key(std::string_view name) {
    separate();
    io::append_json_string(text_, valid_utf8(name));
    text_ += ':';
    comma_ = false;
    return *this;
  }
  JsonText& value(std::string_view text) {
    separate();
    io::append_json_string(text_, valid_utf8(text));
    return done();
  }
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  JsonText& value(std::same_as<bool> auto flag) {
    separate();
    text_ += flag ? "true" : "false";
    return done();
  }
  JsonText& value(std::floating_point auto number) {
    if (!std::isfinite(number)) return null();
    separate();
    char buffer[40];  // to_chars does not depend on the locale
    text_.append(buffer, std::to_chars(buffer, std::end(buffer), static_cast<double>(number),
                                       std::chars_format::general, 9)
                             .ptr);
    return done();
  }
  JsonText& value(std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
  {
    separate();
    text_ += std::to_string(number);
    return done();
  }
  /// Writes nanoseconds as microseconds, exactly.
  JsonText& micros(std::int64_t ns) {
    separate();
    const std::int64_t size = ns < 0 ? -ns : ns;
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%s%lld.%03d", ns < 0 ? "-" : "",
                  static_cast<long long>(size / 1000), static_cast<int>(size % 1000));
    text_ += buffer;
    return done();
  }
  JsonText& null() {
    separate();
    text_ += "null";
    return done();
  }
  template <class T> JsonText& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  /// Adds a line break, for human readers.
  JsonText& line() {
    if (comma_) text_ += ',';
    comma_ = false;
    text_ += '\n';
    return *this;
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  JsonText& open(char opening, char closing) {
    separate();
    text_ += opening;
    closing_ += closing;
    comma_ = false;
    return *this;
  }
  void separate() {
    if (comma_) text_ += ',';
  }
  JsonText& done() {
    comma_ = true;
    return *this;
  }
  std::string text_, closing_;
  bool comma_ = false;
};

}  // namespace braid::parallel
