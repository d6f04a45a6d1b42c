#pragma once
// A strict JSON parser (RFC 8259), for tests of JSON that the library writes.
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {

struct JsonValue {
  enum class Type { null, boolean, number, string, array, object } type = Type::null;
  bool boolean = false;
  double number = 0;
  std::string string;  ///< escapes decoded; \u escapes up to 007f only, others stay as written
  std::vector<JsonValue> items;
  std::map<std::string, JsonValue> fields;

  const JsonValue& operator[](const std::string& name) const {
    const auto at = fields.find(name);
    if (type != Type::object || at == fields.end())
      throw std::runtime_error("JSON: no field '" + name + "'");
    return at->second;
  }
  const JsonValue& operator[](std::size_t i) const { return items.at(i); }
  [[nodiscard]] bool has(const std::string& name) const { return fields.count(name) != 0; }
  [[nodiscard]] bool is_null() const { return type == Type::null; }
};

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}
  /// Throws std::runtime_error if the text is not valid JSON.
  static JsonValue parse(std::string_view text) {
    JsonParser parser(text);
    JsonValue value = parser.value();
    parser.space();
    if (parser.at_ != text.size()) parser.fail("something after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("JSON: " + why + " at byte " + std::to_string(at_) + ": " +
                             std::string(text_.substr(at_, 40)));
  }
  void space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void want(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) fail(std::string("expected ") + c);
    ++at_;
  }
  JsonValue value() {
    space();
    JsonValue v;
    if (take("null")) return v;
    if (take("true") || take("false")) {
      v.type = JsonValue::Type::boolean;
      v.boolean = text_[at_ - 2] == 'u';
    } else if (take("{")) {
      v.type = JsonValue::Type::object;
      members(v);
    } else if (take("[")) {
      v.type = JsonValue::Type::array;
      elements(v);
    } else if (at_ < text_.size() && text_[at_] == '"') {
      v.type = JsonValue::Type::string;
      v.string = string();
    } else {
      number(v);
    }
    return v;
  }
  void members(JsonValue& v) {
    space();
    if (take("}")) return;
    do {
      space();
      const std::string name = string();
      want(':');
      if (!v.fields.emplace(name, value()).second) fail("the field '" + name + "' twice");
      space();
    } while (take(","));
    want('}');
  }
  void elements(JsonValue& v) {
    space();
    if (take("]")) return;
    do {
      v.items.push_back(value());
      space();
    } while (take(","));
    want(']');
  }
  std::string string() {
    want('"');
    std::string out;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("a control character in a string");
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      const char c = text_.substr(++at_).empty() ? '\0' : text_[at_];
      const std::string_view plain = "\"\\/", letters = "bfnrt", codes = "\b\f\n\r\t";
      if (plain.find(c) != std::string_view::npos) out += c;
      else if (letters.find(c) != std::string_view::npos) out += codes[letters.find(c)];
      else if (c == 'u' && at_ + 4 < text_.size()) code(out);
      else fail("an unknown escape");
    }
    want('"');
    return out;
  }
  void code(std::string& out) {
    const std::string hex(text_.substr(at_ + 1, 4));
    char* end = nullptr;
    const long code = std::strtol(hex.c_str(), &end, 16);
    if (end != hex.c_str() + 4) fail("an escape without four digits");
    if (code < 0x80) out += static_cast<char>(code);
    else out += "\\u" + hex;
    at_ += 4;
  }
  void number(JsonValue& v) {
    const std::string rest(text_.substr(at_, 40));
    char* end = nullptr;
    if (rest.empty() || std::string_view("-0123456789").find(rest[0]) == std::string_view::npos)
      fail("expected a value");
    v.type = JsonValue::Type::number;
    v.number = std::strtod(rest.c_str(), &end);
    at_ += static_cast<std::size_t>(end - rest.c_str());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline JsonValue parse_json(std::string_view text) { return JsonParser::parse(text); }

}  // namespace braid::test
