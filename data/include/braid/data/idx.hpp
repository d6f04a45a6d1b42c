#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

namespace braid::data {

struct IdxOptions {
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  ///< most bytes of numbers, as stored; a file that says more is a LimitError
};

/// Reads an IDX file (the format of MNIST), plain or compressed with gzip: which of the two is seen from its first bytes, not from its name.
///
/// Types   in the file 08 → uint8, 09 (int8), 0B (int16) and 0C (int32) → int32, 0D → float32, 0E → float64
/// Shapes  as the file says, rank 1 to 8; a size of 0 is allowed
/// Throws  IoError; FormatError unless the file (for gzip, its one member, decompressed) is exactly as long as it says; LimitError; Error for gzip in a build without zlib.
///         A compressed file is checked to its end before the tensor is made: what it says costs no memory.
[[nodiscard]] Tensor read_idx(const std::string& path, const IdxOptions& options = {});
/// The same from memory; `name` stands for the path in messages.
[[nodiscard]] Tensor read_idx(std::span<const std::byte> bytes, const IdxOptions& options = {}, const std::string& name = "memory");

}  // namespace braid::data
