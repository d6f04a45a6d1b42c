#pragma once
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// Builds a JSON object, with its keys in the order of the calls:
/// `Json row; row.set("name", name).set("ratio", 2.5);`. A number that is not finite becomes null.
class Json {
 public:
  Json& set(std::string_view key, double value) { return add(key, number(value)); }
  Json& set(std::string_view key, int value) { return add(key, std::to_string(value)); }
  Json& set(std::string_view key, bool value) { return add(key, value ? "true" : "false"); }
  Json& set(std::string_view key, std::string_view value) { return add(key, quoted(value)); }
  Json& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  Json& set(std::string_view key, std::nullptr_t) { return add(key, "null"); }
  Json& set(std::string_view key, const Json& value) { return add(key, value.text()); }
  Json& set(std::string_view key, const std::vector<Json>& values) {
    std::string list;
    for (const Json& v : values) list += (list.empty() ? "\n  " : ",\n  ") + v.text();
    return add(key, "[" + list + "]");
  }
  [[nodiscard]] std::string text() const { return "{" + body_ + "}"; }

 private:
  Json& add(std::string_view key, const std::string& value) {
    body_ += (body_.empty() ? "" : ", ") + quoted(key) + ": " + value;
    return *this;
  }
  static std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.6g", value);
    return buffer;
  }
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) < 0x20) {
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
        out += buffer;
      } else {
        out += c;
      }
    }
    return out + '"';
  }
  std::string body_;
};

}  // namespace bench
