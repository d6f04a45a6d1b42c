#pragma once
#include <cstddef>

namespace braid::cpu {

/// Returns the bytes of the last-level cache, or 32 MiB if the system does not report them. Kernels
/// write outputs larger than this with stores that bypass the caches.
[[nodiscard]] std::size_t last_level_cache_bytes() noexcept;

}  // namespace braid::cpu
