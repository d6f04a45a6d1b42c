#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/state_dict.hpp>

// numpy's .npz format: .npy files in a zip file, of names without `.npy`.
namespace braid::data {

struct NpzOptions {
  /// most bytes of all arrays; a file that says more is a LimitError
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  /// most bytes of all arrays for each byte of the file, beside 1 MiB that is always allowed; else
  /// a LimitError. What compresses well needs more: pass it for files that you trust
  std::uint64_t max_ratio = 2;
};

/// Reads what np.savez and np.savez_compressed write; every checksum is compared.
///
/// Types   as load_npy
/// Throws  IoError, also for compressed arrays in a build without zlib; FormatError for any other
///         kind of zip file (encrypted, a comment, members that are not .npy, that overlap, or
///         twice the same name); LimitError, also above 4 GiB (zip64); OutOfMemoryError
[[nodiscard]] StateDict load_npz(const std::string& path, const NpzOptions& options = {});
/// The same from memory; `name` stands for the path in messages.
[[nodiscard]] StateDict load_npz(std::span<const std::byte> bytes, const NpzOptions& options = {},
                                 const std::string& name = "memory");

/// Writes tensors as np.savez does, uncompressed; whole or not at all. Names are those of the dict.
/// Throws  ArgumentError for a name that is empty, longer than 1,024 bytes, not UTF-8 or with
///         control characters, for over 65,534 tensors or 4 GiB; else as save_npy
void save_npz(const std::string& path, std::span<const StateDict::value_type> tensors);

}  // namespace braid::data
