#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/state_dict.hpp>

// numpy's .npz format: .npy files in a zip file. The names here are without `.npy`.
namespace braid::data {

struct NpzOptions {
  /// the largest number of bytes of all arrays; a file with more throws LimitError
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  /// the largest number of bytes of all arrays per byte of the file, plus 1 MiB that is always
  /// allowed; more throws LimitError. Data that compresses well needs more: set it for files that
  /// you trust
  std::uint64_t max_ratio = 2;
};

/// Reads the files of np.savez and np.savez_compressed, and verifies every checksum.
///
/// Types   as load_npy
/// Throws  IoError, also for compressed arrays in a build without zlib; FormatError for any other
///         kind of zip file (encrypted, with a comment, with members that are not .npy, that
///         overlap, or that have equal names); LimitError, also above 4 GiB (zip64);
///         OutOfMemoryError
[[nodiscard]] StateDict load_npz(const std::string& path, const NpzOptions& options = {});
/// The same from memory. `name` replaces the path in messages.
[[nodiscard]] StateDict load_npz(std::span<const std::byte> bytes, const NpzOptions& options = {},
                                 const std::string& name = "memory");

/// Writes tensors as np.savez does, uncompressed, and atomically. The names are those of the dict.
/// Throws  ArgumentError for a name that is empty, longer than 1,020 bytes, not UTF-8, with control
///         characters or not unique, for over 65,534 tensors or 4 GiB; else as save_npy
void save_npz(const std::string& path, std::span<const StateDict::value_type> tensors);

}  // namespace braid::data
