#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

namespace braid::data {

struct IdxOptions {
  /// most bytes of numbers, as stored; a file that says more is a LimitError
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  /// most bytes of numbers for each byte of a compressed file, where there is more than 1 MiB of
  /// them; else a LimitError
  std::uint64_t max_ratio = 100;
};

/// Reads an IDX file (the format of MNIST), plain or compressed with gzip: which of the two is seen
/// from its first bytes, not from its name.
///
/// Types   in the file 08 → uint8, 09 (int8), 0B (int16) and 0C (int32) → int32, 0D → float32, 0E →
///         float64
/// Shapes  as the file says, rank 1 to 8; a size of 0 is allowed
/// Throws  IoError, also for gzip in a build without zlib; FormatError unless the file (for gzip,
///         its one member, decompressed) is exactly as long as it says; LimitError;
///         OutOfMemoryError
/// Memory  beside the tensor 64 KiB for a plain file. Of a compressed one what was decompressed is
///         held once more until its end and its checksum were seen: what a header only says costs
///         nothing.
[[nodiscard]] Tensor read_idx(const std::string& path, const IdxOptions& options = {});
/// The same from memory; `name` stands for the path in messages.
[[nodiscard]] Tensor read_idx(std::span<const std::byte> bytes, const IdxOptions& options = {},
                              const std::string& name = "memory");

}  // namespace braid::data
