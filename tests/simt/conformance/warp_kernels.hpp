#pragma once
#include <cstdint>

// What the lanes of a warp, and the threads of a block, do together: integers, so that a GPU must
// give the same bits.
namespace braid::simt_tests {

void votes(std::uint32_t* out);  // out[8]
void shuffles(int* out);         // out[5 * 32]
void atomics(unsigned* out);     // out[10], set to 5
void half_atomics(void* sum);    // one float16: 64 times 0.5

}  // namespace braid::simt_tests
