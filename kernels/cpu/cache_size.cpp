#include "cpu/cache_size.hpp"

#if defined(__linux__)
#include <unistd.h>
#endif

namespace braid::cpu {

std::size_t last_level_cache_bytes() noexcept {
  static const std::size_t bytes = [] {
#if defined(_SC_LEVEL3_CACHE_SIZE)
    const long size = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size > 0) return static_cast<std::size_t>(size);
#endif
    return std::size_t{32} << 20;
  }();
  return bytes;
}

}  // namespace braid::cpu
