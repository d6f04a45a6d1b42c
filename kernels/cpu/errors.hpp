#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/elementwise.hpp>

// Functions that throw for the files in simd/. They are out of line, in a file compiled for every
// processor (see simd/kernels.hpp).
namespace braid::cpu {

/// Throws DTypeError: `op: expected <expected>, got int32`.
[[noreturn]] void fail_dtype(const char* op, const char* expected, DType got);
/// Throws ArgumentError: an integer division by zero.
[[noreturn]] void fail_division_by_zero(BinaryOp op);
/// Throws IndexError: `op: expected <what> in [low, high), got 7 at position 3`.
[[noreturn]] void fail_index(const char* op, const char* what, std::int64_t low, std::int64_t high,
                             std::int64_t got, std::int64_t position);
/// Throws ShapeError: max, min or argmax of no elements.
[[noreturn]] void fail_empty_reduction(const char* op);

}  // namespace braid::cpu
