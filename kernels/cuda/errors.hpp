#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// How the .cu files throw: out of line, so that they need no exception or stream headers. The texts
// are those of the CPU kernels.
namespace braid::cuda {

/// DTypeError: `op: expected <expected>, got int32`.
[[noreturn]] void fail_dtype(const char* op, const char* expected, DType got);
/// ShapeError: max, min and argmax of nothing.
[[noreturn]] void fail_empty_reduction(const char* op);
/// ShapeError: `op: expected <expected>, got 129`.
[[noreturn]] void fail_size(const char* op, const char* expected, std::int64_t got);

}  // namespace braid::cuda
