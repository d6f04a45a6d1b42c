#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include <braid/core/dtype.hpp>
#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel::process {

/// Combines the buffers of `ranks` ranks into `out`, element by element, in a fixed tree:
/// neighbours first, then pairs at distance 2, 4, … 16-bit floats are combined in float32 and
/// rounded once; a mean is the sum divided by `ranks`. `source(rank)` returns a rank's buffer;
/// `out` may be one of them. A NaN makes every result NaN.
void reduce_host(DType dtype, ReduceOp op, std::size_t ranks,
                 const std::function<const void*(std::size_t)>& source, void* out,
                 std::int64_t count);

/// Divides in place: what is left of a mean after a sum.
void divide_host(DType dtype, void* data, std::int64_t count, int divisor);

}  // namespace braid::parallel::process
