#include <braid/core/tree/type_name.hpp>

namespace braid::detail {

std::string_view short_type_name(std::string_view signature) noexcept {
  // g++:   constexpr const char* braid::detail::signature() [with T = N::Outer<int>::Net]
  // clang: const char *braid::detail::signature() [T = N::Outer<int>::Net]
  constexpr std::string_view kMark = "T = ";
  const std::size_t begin = signature.find(kMark);
  if (begin == signature.npos) return signature;
  std::string_view type = signature.substr(begin + kMark.size());
  if (type.ends_with(']')) type.remove_suffix(1);
  std::string_view name = type;
  if (name.ends_with('>')) {  // removes the template arguments, including brackets inside them
    int depth = 0;
    std::size_t at = name.size();
    while (at > 0) {
      const char c = name[--at];
      if (c == '>' || c == ')' || c == ']' || c == '}') ++depth;
      else if (c == '<' || c == '(' || c == '[' || c == '{') --depth;
      if (depth == 0) break;
    }
    name = name.substr(0, at);
  }
  std::size_t first = name.size();
  const auto part_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c & 0x80) != 0;
  };
  while (first > 0 && part_of_name(name[first - 1])) --first;
  name = name.substr(first);
  return name.empty() ? type : name;  // a type without a name, such as a lambda's
}

}  // namespace braid::detail
