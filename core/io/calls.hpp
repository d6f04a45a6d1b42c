#pragma once
#include <cerrno>
#include <string>

#include <braid/core/io/file_system.hpp>

namespace braid::io {

/// The calls in use.
[[nodiscard]] const FileSystem& calls() noexcept;

/// Throws ArgumentError for an empty path and for one with a NUL character.
void check_path(const std::string& path);

/// Repeats a call that a signal interrupted. close is not to be repeated, so it does not come here.
template <class F> auto uninterrupted(const F& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace braid::io
