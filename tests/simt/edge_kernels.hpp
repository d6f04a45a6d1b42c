#pragma once
#include <cstdint>

// Kernels at the edges of the language: partial warps and masks, early returns, local memory, small
// types.
namespace braid::simt_tests {

// two groups of 16 lanes, each with its own mask; out[32]
void half_warps(float* out);
// read by all, then overwritten behind __syncwarp; out[32]
void warp_broadcast(float* out);
void warp_same_word(float* out);  // wrong: two lanes write one word
// wrong: no __syncwarp between the reads and the write
void warp_read_then_write(float* out);
// wrong for n < 64: a barrier after some have returned
void early_return(float* out, int n);
void short_warp(float* out);                    // 40 threads: the second warp has 8 lanes; out[2]
void deep_locals(float* out);                   // wrong: 1 MB of local variables
void throwing(int* out);                        // wrong: an exception leaves the kernel
[[noreturn]] void host_function_that_throws();  // test_edge.cpp
// neighbours within a word belong to different threads and blocks
void bytes_of_words(bool* flags, int n);
// every thread writes; fence, barrier, count in
void fence_by_all(const float* in, float* partial, unsigned* counter, float* out, bool fence);
void tracing(int* out);
void local_arrays(float* out, int n);  // constants of the program, arrays of a thread
void dynamic_shared(float* out, int n);
void divide(int* out, int by);  // wrong for 0
// each block waits for the flag of the one before
void chain_of_blocks(float* data, unsigned* flags, float* sum, int blocks);
// out[32]: neighbours in one word, warp barriers of two halves
void bytes_read_at_two_times(unsigned char* out);
// [blocks][threads]: unique numbers from all built-in variables
void kernel_id(std::uint32_t* out);

}  // namespace braid::simt_tests
