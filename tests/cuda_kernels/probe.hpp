#pragma once
#include <cstdint>

#include <braid/core/backend.hpp>
#include <braid/core/kernel_args/loop.hpp>

namespace kernel_test {

/// Writes the element offsets of operands 0 and 1 at the positions i[0 … count) of a loop to out[2
/// * k], out[2 * k + 1], by the kernels' own index arithmetic.
void probe_offsets(const braid::Loop& loop, const std::int64_t* i, std::int64_t count,
                   std::int64_t* out, braid::Stream& stream);

}  // namespace kernel_test
