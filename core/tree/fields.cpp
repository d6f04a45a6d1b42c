#include <map>
#include <mutex>

#include <braid/core/tree/fields.hpp>

namespace braid::tree::detail {

std::string joined(std::string_view base, std::string_view own) {
  std::string names(base);
  if (!base.empty() && !own.empty()) names += ", ";
  return names += own;
}

std::string_view numbered(std::size_t n) {
  // Never destroyed, because static objects may use the names until the program exits.
  static auto& mutex = *new std::mutex;
  static auto& lists = *new std::map<std::size_t, std::string>;
  const std::scoped_lock lock(mutex);
  const auto [at, fresh] = lists.try_emplace(n);
  if (fresh) {
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0) at->second += ',';
      at->second += std::to_string(i);
    }
  }
  return at->second;
}

std::string_view next_name(std::string_view& names) noexcept {
  const std::size_t comma = names.find(',');
  std::string_view name = names.substr(0, comma);
  names = comma == names.npos ? std::string_view() : names.substr(comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return name;
}

}  // namespace braid::tree::detail
