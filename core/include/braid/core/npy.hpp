#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

// numpy's .npy format: one array a file. Data only: arrays of Python objects and structured ones
// are refused. (.npz: <braid/data/npz.hpp>)
namespace braid {

namespace io { class Source; }

struct NpyOptions {
  Device device = {};  ///< where the tensor is made
};

/// Reads a .npy file, versions 1 to 3, and checks all of it.
///
/// Types   in the file |b1 (bytes 0 and 1), |u1, <i4, <i8, <f2, <f4, <f8; another type, big-endian
///         ones too, is a FormatError that names it
/// Shapes  rank 0 to 8; a Fortran-ordered array becomes a contiguous tensor of the same shape
/// Throws  IoError; FormatError unless the file is exactly as long as its header says; LimitError
///         for a header above 64 KiB, which is not read;
///         OutOfMemoryError
[[nodiscard]] Tensor load_npy(const std::string& path, const NpyOptions& options = {});
/// The same from memory; `name` stands for the path in messages.
[[nodiscard]] Tensor load_npy(std::span<const std::byte> bytes, const NpyOptions& options = {},
                              const std::string& name = "memory");

/// Writes a .npy file, version 1, C order; whole or not at all. From any device, of any strides.
/// Throws DTypeError for bfloat16, which numpy does not have, ArgumentError for an undefined
/// tensor; IoError.
void save_npy(const std::string& path, const Tensor& tensor);

namespace detail {
[[nodiscard]] Tensor read_npy(const io::Source& file, const NpyOptions& options);
/// What stands before the numbers. Throws as save_npy; `op` is for messages.
[[nodiscard]] std::string npy_header(const char* op, const Tensor& tensor);
}  // namespace detail

}  // namespace braid
