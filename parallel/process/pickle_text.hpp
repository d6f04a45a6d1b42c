#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::parallel {

/// Builds a pickle (protocol 2) of dictionaries, lists, tuples, texts and numbers:
/// `pickle.dict().key("n").value(3).end().finish()`. It has no opcode that names a class or calls
/// anything. The caller must open and close in order.
class PickleText {
 public:
  PickleText() : text_("\x80\x02") {}
  PickleText& dict() { return open('d'); }
  PickleText& list() { return open('l'); }
  PickleText& tuple() { return open('t'); }
  PickleText& end() {
    text_ += closing_.back();
    closing_.pop_back();
    return *this;
  }
  PickleText& key(std::string_view name) { return value(name); }
  /// Bytes that are not well-formed UTF-8 become U+FFFD.
  PickleText& value(std::string_view text);
  PickleText& value(const char* text) { return value(std::string_view(text)); }
  PickleText& value(std::same_as<bool> auto flag) {
    text_ += flag ? '\x88' : '\x89';
    return *this;
  }
  PickleText& value(std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
  {
    return integer(static_cast<std::int64_t>(number));
  }
  PickleText& none() {
    text_ += 'N';
    return *this;
  }
  template <class T> PickleText& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  [[nodiscard]] std::string finish() && {
    text_ += '.';
    return std::move(text_);
  }

 private:
  PickleText& open(char closing) {
    text_ += '(';
    closing_ += closing;
    return *this;
  }
  PickleText& integer(std::int64_t number);

  std::string text_, closing_;
};

}  // namespace braid::parallel
