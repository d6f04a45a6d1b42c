#pragma once
// Kernels whose shared and global accesses are known by count; the lines carry marks for
// marked_lines.
namespace braid::simt_tests {

// tile of 32x32: the reads of a column hit one bank
void transpose_32(const float* in, float* out);
void transpose_33(const float* in, float* out);     // 32x33: every bank once
void transpose_naive(const float* in, float* out);  // without shared memory
void copy_vectors(const float* in, float* out);     // load4, store4
void copy_shared_vectors(float* out);
void broadcast(float* out);

}  // namespace braid::simt_tests
