#pragma once
// The kernels of these tests: edge cases of the language, kernels of known cost, and correct ones.
// Pointers are device memory. Lines that tests look up are marked for marked_lines.
#include <cstdint>

#include "run_kernel.hpp"

namespace braid::simt_tests {

// kernels.cu; launched with one block of 32 threads unless noted
__global__ void half_warps(float* out);            // two groups of 16 lanes, each with its own mask
__global__ void warp_broadcast(float* out);        // all read, then overwrite after __syncwarp
__global__ void warp_same_word(float* out);        // wrong: two lanes write one word
__global__ void warp_read_then_write(float* out);  // wrong: no __syncwarp in between
__global__ void early_return(float* out, int n);   // 64; wrong for n < 64: a barrier after some
__global__ void short_warp(float* out);            // 40: the second warp has 8 lanes; out[2]
__global__ void deep_locals(float* out);           // wrong: 1 MB of local variables
__global__ void throwing(int* out);                // wrong: an exception leaves the kernel
[[noreturn]] void host_function_that_throws();     // test_edge.cpp
__global__ void bytes_of_words(bool* flags, int n);  // blocks of 50: neighbours in a word
__global__ void tracing(int* out);                   // 64 threads
__global__ void local_arrays(float* out, int n);     // 64 threads: constants, arrays of a thread
__global__ void dynamic_shared(float* out, int n);   // 64 threads, n floats
__global__ void divide(int* out, int by);            // wrong for by = 0
__global__ void bytes_read(unsigned char* out);      // bytes of one word; barriers of two groups
__global__ void kernel_id(std::uint32_t* out);       // computed from all built-in variables
// 8 blocks of 64: every thread writes; then a fence, a barrier and an atomic counter
__global__ void fence_by_all(const float* in, float* partial, unsigned* counter, float* out,
                             bool fence);
// each block waits for the flag of the previous block
__global__ void chain_of_blocks(float* data, unsigned* flags, float* sum);

// of known cost; 32x8 threads
template <int Columns> __global__ void transpose(const float* in, float* out);
__global__ void transpose_naive(const float* in, float* out);  // without shared memory
__global__ void copy_vectors(const float* in, float* out);     // 32 threads, as the kernels below
__global__ void copy_shared_vectors(float* out);
__global__ void broadcast(float* out);

// for tests of operations
__global__ void fill_kernel(float* p, float value, int n);
__global__ void copy_kernel(const float* from, float* to, int n);
__global__ void fill_bytes(unsigned char* p, int n);
__global__ void copy_bytes(const unsigned char* from, unsigned char* to, int n);
__global__ void count(unsigned* sum);
__global__ void read_count(const unsigned* sum, unsigned* out);

// barrier_kernels.cu
__global__ void mbarrier_ring(const float* in, float* out, int tiles);  // of 64; 96 threads
__global__ void named_barrier_ring(const float* in, float* out, int tiles);
__global__ void halves_of_words(float* out);                     // 96 threads
__global__ void one_lane_waits(float* out);                      // 64 threads
__global__ void take_turns(unsigned* counter, unsigned* turns);  // 64 threads

// right_kernels.cu; C = A B is row major
void gemm_tiled(int m, int n, int k, const float* a, const float* b, float* c);
// ldmatrix and mma; m, n and k are multiples of 64, 64 and 16
void gemm_narrow(int m, int n, int k, const simt::bfloat16_t* a, const simt::bfloat16_t* b,
                 float* c);
void gemm_narrow(int m, int n, int k, const simt::half_t* a, const simt::half_t* b, float* c);

/// Returns true if these kernels are compiled with the checker's instrumentation. Without it the
/// checker sees only fences, atomics and vector accesses.
[[nodiscard]] bool instrumented();

}  // namespace braid::simt_tests

/// The first statement of a test that needs the checker. The test returns if the build has none. A
/// build that is meant to check must not skip the test.
#if defined(BRAID_SIMT_CHECK)
#define SIMT_CHECKED_OR_RETURN() REQUIRE(::braid::simt_tests::instrumented())
#else
#define SIMT_CHECKED_OR_RETURN() \
  if (!::braid::simt_tests::instrumented()) return
#endif
