#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simt/location.hpp"
#include "simt/types.hpp"
#if !defined(__CUDACC__) && SIMT_EMULATED
#include "simt/atomic.hpp"
#endif

/// Wrappers of the PTX instructions of sm_80 that kernels use: cp.async, ldmatrix, mma.sync,
/// ld.acquire and st.release. Under nvcc they are the instructions; in the emulation they are
/// functions that move and multiply the registers of the same lanes. All 32 lanes of a warp call
/// ldmatrix and mma together.
namespace braid::simt {

#if defined(__CUDACC__)

/// Copies 16 bytes asynchronously from global to shared memory. Only `bytes` of them are read; the
/// rest become zero. Both addresses are aligned to 16.
__device__ inline void cp_async16(void* shared, const void* global, int bytes = 16) {
  const unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s), "l"(global), "r"(bytes)
               : "memory");
}
/// As cp_async16, 8 bytes.
__device__ inline void cp_async8(void* shared, const void* global, int bytes = 8) {
  const unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(s), "l"(global), "r"(bytes)
               : "memory");
}
/// As cp_async16, 4 bytes.
__device__ inline void cp_async4(void* shared, const void* global, int bytes = 4) {
  const unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(s), "l"(global), "r"(bytes)
               : "memory");
}
/// Closes the group of this thread's cp.async since the last commit.
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the newest N groups of this thread are in flight. Other threads see the data
/// after a barrier.
template <int N> __device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
/// Waits for all cp.async of this thread, committed or not.
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// ldmatrix: loads N 8x8 matrices of 16-bit elements. Lanes 8 i to 8 i + 7 pass the addresses
/// (shared memory, aligned to 16 bytes) of the rows of matrix i. Lane l receives elements 2 (l % 4)
/// and 2 (l % 4) + 1 of row l / 4 in r[i]; with _trans, of the transposed matrix.
__device__ inline void ldmatrix_x1(std::uint32_t (&r)[1], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(p)
               : "memory");
}
__device__ inline void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(p)
               : "memory");
}
__device__ inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(p)
               : "memory");
}
__device__ inline void ldmatrix_x1_trans(std::uint32_t (&r)[1], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(p)
               : "memory");
}
__device__ inline void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(p)
               : "memory");
}
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(p)
               : "memory");
}

/// Stores `value` to global memory. A thread of the device that then reads it with load_acquire
/// sees what this thread wrote before, what other threads of the block wrote before the last
/// __syncthreads (of the warp: __syncwarp), and what those have observed. T: 32 or 64 bits,
/// unsigned. (PTX ISA, "Memory Consistency Model": release and acquire of the scope .gpu.)
template <class T> __device__ inline void store_release(T* p, std::type_identity_t<T> value) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  if constexpr (sizeof(T) == 4)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
                 "r"(value)
                 : "memory");
  else
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
                 "l"(value)
                 : "memory");
}
/// Reads what store_release or an atomic stored. A loop may wait for a value that a block stores
/// which has certainly begun, as that of a smaller number from an atomic counter. Blocks may start
/// in any order, so a smaller blockIdx is no reason.
template <class T> [[nodiscard]] __device__ inline T load_acquire(const T* p) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T value;
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(p))
                 : "memory");
  else
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(__cvta_generic_to_global(p))
                 : "memory");
  return value;
}

/// x rounded to tf32 (10 bits of mantissa), ties away from zero.
__device__ inline std::uint32_t to_tf32(float x) {
  std::uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

/// 2^x with a relative error of 2^-22; subnormal numbers become 0.
__device__ inline float exp2_approx(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// Adds 1 to a counter in global memory, or sets it to 0 if it is `most`, and returns what it was.
/// Of device scope: the thread that reads n sees what those that made it n, and the threads that a
/// barrier had synchronized with them, wrote before.
__device__ inline unsigned inc_acq_rel(unsigned* counter, unsigned most) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter)), "r"(most)
               : "memory");
  return before;
}

// D[16,8] = A[16,k] B[k,8] + C. With g = lane / 4, t = lane % 4: c0, c1 are (g, 2t), (g, 2t+1); c2,
// c3 the same in row g + 8.
#define SIMT_MMA(name, instruction)                                                             \
  __device__ inline void name(float (&d)[4], const std::uint32_t (&a)[4],                       \
                              const std::uint32_t (&b)[2], const float (&c)[4]) {               \
    asm volatile("mma.sync.aligned." instruction                                                \
                 " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"                      \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), \
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));                                            \
  }
/// k = 8, tf32: a0..a3 are (g, t), (g+8, t), (g, t+4), (g+8, t+4); b0, b1 are (t, g), (t+4, g).
SIMT_MMA(mma_m16n8k8_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
/// k = 16, two elements per register, the lower k in the low half: a0..a3 are (g, 2t..), (g+8,
/// 2t..), (g, 2t+8..), (g+8, 2t+8..); b0, b1 are (2t.., g), (2t+8.., g).
SIMT_MMA(mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
SIMT_MMA(mma_m16n8k16_fp16, "m16n8k16.row.col.f32.f16.f16.f32")
#undef SIMT_MMA

/// Reads or writes four values as one 16-byte access.
template <class V, class T> __device__ inline V load_vector(const T* p) {
  return *reinterpret_cast<const V*>(p);
}
template <class V, class T> __device__ inline void store_vector(T* p, const V& v) {
  *reinterpret_cast<V*>(p) = v;
}
/// Four floats as one access; p is aligned to 16.
__device__ inline float4 load4(const float* p) { return load_vector<float4>(p); }
__device__ inline void store4(float* p, const float4& v) { store_vector(p, v); }

#elif SIMT_EMULATED

namespace detail {
void fence(bool whole_device);
void async_copy(void* shared, const void* global, int size, int bytes, Location where);
void async_commit();
void async_wait(int newest);
void async_wait_all();
void load_matrices(std::uint32_t* r, int count, bool transposed, const void* row, Location where);
enum class Mma { tf32, bf16, fp16 };
void multiply(Mma kind, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
              Location where);
// reports an access that the compiler did not see to the checker
void touch(const void* p, std::size_t bytes, bool write, Location where);
std::uint64_t load_acquire(const void* p, std::size_t bytes, Location where);
void store_release(void* p, std::size_t bytes, std::uint64_t value, Location where);
}  // namespace detail

template <class T>
inline void store_release(T* p, std::type_identity_t<T> value, Location w = Location::current()) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  detail::store_release(p, sizeof(T), value, w);
}
template <class T>
[[nodiscard]] inline T load_acquire(const T* p, Location w = Location::current()) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  return static_cast<T>(detail::load_acquire(p, sizeof(T), w));
}

inline void cp_async16(void* shared, const void* global, int bytes = 16,
                       Location w = Location::current()) {
  detail::async_copy(shared, global, 16, bytes, w);
}
inline void cp_async8(void* shared, const void* global, int bytes = 8,
                      Location w = Location::current()) {
  detail::async_copy(shared, global, 8, bytes, w);
}
inline void cp_async4(void* shared, const void* global, int bytes = 4,
                      Location w = Location::current()) {
  detail::async_copy(shared, global, 4, bytes, w);
}
inline void cp_async_commit() { detail::async_commit(); }
template <int N> inline void cp_async_wait() { detail::async_wait(N); }
inline void cp_async_wait_all() { detail::async_wait_all(); }

inline void ldmatrix_x1(std::uint32_t (&r)[1], const void* row, Location w = Location::current()) {
  detail::load_matrices(r, 1, false, row, w);
}
inline void ldmatrix_x2(std::uint32_t (&r)[2], const void* row, Location w = Location::current()) {
  detail::load_matrices(r, 2, false, row, w);
}
inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, Location w = Location::current()) {
  detail::load_matrices(r, 4, false, row, w);
}
inline void ldmatrix_x1_trans(std::uint32_t (&r)[1], const void* row,
                              Location w = Location::current()) {
  detail::load_matrices(r, 1, true, row, w);
}
inline void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row,
                              Location w = Location::current()) {
  detail::load_matrices(r, 2, true, row, w);
}
inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row,
                              Location w = Location::current()) {
  detail::load_matrices(r, 4, true, row, w);
}

inline unsigned inc_acq_rel(unsigned* counter, unsigned most, Location w = Location::current()) {
  detail::fence(true);
  return atomicInc(counter, most, w);
}

inline std::uint32_t to_tf32(float x) {
  const std::uint32_t u = __builtin_bit_cast(std::uint32_t, x);
  return (u & 0x7f800000u) == 0x7f800000u ? (u & ~0x1fffu) | ((u & 0x7fffffu) != 0 ? 0x400000u : 0u)
                                          : (u + 0x1000u) & ~0x1fffu;
}
inline float exp2_approx(float x) {
  const float r = std::exp2(x < -126.0f && x >= -149.0f ? -HUGE_VALF : x);
  return r < 0x1p-126f ? 0.0f : r;
}
inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2], const float (&c)[4],
                             Location w = Location::current()) {
  detail::multiply(detail::Mma::tf32, d, a, b, c, w);
}
inline void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                              const std::uint32_t (&b)[2], const float (&c)[4],
                              Location w = Location::current()) {
  detail::multiply(detail::Mma::bf16, d, a, b, c, w);
}
inline void mma_m16n8k16_fp16(float (&d)[4], const std::uint32_t (&a)[4],
                              const std::uint32_t (&b)[2], const float (&c)[4],
                              Location w = Location::current()) {
  detail::multiply(detail::Mma::fp16, d, a, b, c, w);
}

template <class V, class T>
SIMT_NO_CHECK inline V load_vector(const T* p, Location w = Location::current()) {
  static_assert(sizeof(V) <= 16 && sizeof(V) % sizeof(T) == 0);
  detail::touch(p, sizeof(V), false, w);
  return *reinterpret_cast<const V*>(p);
}
template <class V, class T>
SIMT_NO_CHECK inline void store_vector(T* p, const V& v, Location w = Location::current()) {
  static_assert(sizeof(V) <= 16 && sizeof(V) % sizeof(T) == 0);
  detail::touch(p, sizeof(V), true, w);
  *reinterpret_cast<V*>(p) = v;
}

inline float4 load4(const float* p, Location w = Location::current()) {
  return load_vector<float4>(p, w);
}
inline void store4(float* p, const float4& v, Location w = Location::current()) {
  store_vector(p, v, w);
}

#endif

}  // namespace braid::simt
