#pragma once
#include <cstddef>

namespace braid::cpu {

/// Bytes of the last-level cache, 32 MiB where the system does not say. Outputs larger than this
/// are written past the caches.
[[nodiscard]] std::size_t last_level_cache_bytes() noexcept;

}  // namespace braid::cpu
