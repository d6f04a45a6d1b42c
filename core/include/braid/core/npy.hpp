#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

// NumPy's .npy format: one array per file. Only data is read: arrays of Python objects and
// structured arrays are refused. (For .npz see <braid/data/npz.hpp>.)
namespace braid {

namespace io { class Source; }

struct NpyOptions {
  Device device = {};  ///< where the tensor is made
};

/// Reads a .npy file, versions 1 to 3, and validates all of it.
///
/// Types   in the file |b1 (bytes 0 and 1), |u1, <i4, <i8, <f2, <f4, <f8; any other type, also a
///         big-endian one, throws FormatError, which names it
/// Shapes  rank 0 to 8; a Fortran-ordered array becomes a contiguous tensor of the same shape
/// Throws  IoError; FormatError unless the file is exactly as long as its header says; LimitError
///         for a header above 64 KiB, which is not read; OutOfMemoryError
[[nodiscard]] Tensor load_npy(const std::string& path, const NpyOptions& options = {});
/// The same from memory; `name` is used as the path in messages.
[[nodiscard]] Tensor load_npy(std::span<const std::byte> bytes, const NpyOptions& options = {},
                              const std::string& name = "memory");

/// Writes a .npy file, version 1, C order. The file appears completely or not at all. The tensor
/// may be on any device and have any strides. Throws DTypeError for bfloat16, which NumPy does not
/// have; ArgumentError for an undefined tensor; IoError.
void save_npy(const std::string& path, const Tensor& tensor);

namespace detail {
[[nodiscard]] Tensor read_npy(const io::Source& file, const NpyOptions& options);
/// Returns the bytes before the values. Throws as save_npy; `op` is for messages.
[[nodiscard]] std::string npy_header(const char* op, const Tensor& tensor);
}  // namespace detail

}  // namespace braid
