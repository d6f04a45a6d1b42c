#pragma once
#include <cstdint>

#include <braid/core/backend.hpp>
#include <braid/core/kernel_args/loop.hpp>

namespace kernel_test {

/// For the positions i[0 … count) of a loop, computes the element offsets of operands 0 and 1 by
/// the kernels' own index arithmetic, and writes them to out[2 * k] and out[2 * k + 1].
void probe_offsets(const braid::Loop& loop, const std::int64_t* i, std::int64_t count,
                   std::int64_t* out, braid::Stream& stream);

}  // namespace kernel_test
