#pragma once
#include <cerrno>
#include <string>

#include <braid/core/io/file_system.hpp>

namespace braid::io {

/// Returns the system calls in use: the real ones, or those set by set_file_system().
[[nodiscard]] const FileSystem& calls() noexcept;

/// Throws ArgumentError if the path is empty or contains a NUL character.
void check_path(const std::string& path);

/// Calls again while a signal interrupts the call (EINTR). Not for close(), which must not be
/// repeated.
template <class F> auto uninterrupted(const F& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace braid::io
