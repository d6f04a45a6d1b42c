#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

namespace braid::data {

struct IdxOptions {
  /// the largest number of data bytes, as stored; a file with more throws LimitError
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  /// the largest number of data bytes per byte of a compressed file; more throws LimitError, unless
  /// the data has at most 1 MiB
  std::uint64_t max_ratio = 100;
};

/// Reads an IDX file (the format of MNIST), plain or compressed with gzip. The first bytes decide
/// which of the two it is, not the name.
///
/// Types   in the file 08 → uint8, 09 (int8), 0B (int16) and 0C (int32) → int32, 0D → float32, 0E →
///         float64
/// Shapes  as in the file, rank 1 to 8; a size of 0 is allowed
/// Throws  IoError, also for gzip in a build without zlib; FormatError unless the length of the
///         file (for gzip, of its one member, decompressed) matches its header; LimitError;
///         OutOfMemoryError
/// Memory  for a plain file, 64 KiB besides the tensor. For a compressed file, a second copy of the
///         decompressed data until its checksum is verified. A large size in the header alone
///         allocates no memory.
[[nodiscard]] Tensor read_idx(const std::string& path, const IdxOptions& options = {});
/// The same from memory. `name` replaces the path in messages.
[[nodiscard]] Tensor read_idx(std::span<const std::byte> bytes, const IdxOptions& options = {},
                              const std::string& name = "memory");

}  // namespace braid::data
