#pragma once
#include <cstdint>

// One kernel for each PTX wrapper, and kernels for operations of a warp or a block. They work on
// small integers, which are exact in every type and every order of summation, so a GPU must give
// the same bits.
namespace braid::simt_tests {

enum class MmaKind { tf32, bf16, fp16 };
/// One mma of one warp. The registers of lane l are at a[4 l ..], b[2 l ..], c[4 l ..] and d[4 l
/// ..].
void mma_once(MmaKind kind, const std::uint32_t* a, const std::uint32_t* b, const float* c,
              float* d);
/// One ldmatrix of `count` (1, 2, 4) matrices that are stored consecutively, in rows of 8, in
/// `source`. The result of lane l is r[4 l + i].
void ldmatrix_once(int count, bool transposed, const std::uint16_t* source, std::uint32_t* r);
/// Copies 64 pieces of `size` bytes (4, 8, 16). Of piece i, i % (size + 1) bytes are copied and the
/// rest is zero.
void cp_async_once(int size, const unsigned char* source, unsigned char* destination);
/// A pipeline of `stages` copies that waits until at most one is in flight. out[stage] is what the
/// copy delivered.
void cp_async_stages(int stages, const float* source, float* out);
void round_tf32(const float* x, std::uint32_t* r, int n);

void votes(std::uint32_t* out);  // out[8]
void shuffles(int* out);         // out[5 * 32]
void atomics(unsigned* out);     // out[10], set to 5
void half_atomics(void* sum);    // one float16: 64 times 0.5

}  // namespace braid::simt_tests
