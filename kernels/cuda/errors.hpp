#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Functions that throw for the .cu files. They are out of line, so that those files need no
// exception or stream headers. The messages are those of the CPU kernels.
namespace braid::cuda {

/// Throws DTypeError: `op: expected <expected>, got int32`.
[[noreturn]] void fail_dtype(const char* op, const char* expected, DType got);
/// Throws ShapeError: max, min or argmax of no elements.
[[noreturn]] void fail_empty_reduction(const char* op);
/// Throws ShapeError: `op: expected <expected>, got 129`.
[[noreturn]] void fail_size(const char* op, const char* expected, std::int64_t got);

}  // namespace braid::cuda
