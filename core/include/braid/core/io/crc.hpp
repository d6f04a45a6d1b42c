#pragma once
#include <cstddef>
#include <cstdint>

namespace braid::io {

/// The checksum of gzip and zip (polynomial 04C11DB7, reflected). `before`: of the bytes that come
/// first.
[[nodiscard]] std::uint32_t crc32(const void* bytes, std::size_t count,
                                  std::uint32_t before = 0) noexcept;
/// Castagnoli's (polynomial 1EDC6F41, reflected), of checkpoints and TensorBoard's files.
[[nodiscard]] std::uint32_t crc32c(const void* bytes, std::size_t count,
                                   std::uint32_t before = 0) noexcept;

}  // namespace braid::io
