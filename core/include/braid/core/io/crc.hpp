#pragma once
#include <cstddef>
#include <cstdint>

namespace braid::io {

/// CRC-32, the checksum of gzip and zip (polynomial 04C11DB7, reflected). `before` is the checksum
/// of the bytes that precede these.
[[nodiscard]] std::uint32_t crc32(const void* bytes, std::size_t count,
                                  std::uint32_t before = 0) noexcept;
/// CRC-32C (Castagnoli, polynomial 1EDC6F41, reflected), for checkpoints and TensorBoard files.
[[nodiscard]] std::uint32_t crc32c(const void* bytes, std::size_t count,
                                   std::uint32_t before = 0) noexcept;

}  // namespace braid::io
