#pragma once
// CUDA's device language for a plain C++ compiler. Only simt.hpp includes this file.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/atomic.hpp"
#include "simt/location.hpp"
#include "simt/types.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// Real variables, so that a debugger shows them. They always describe the running CUDA thread.
#define SIMT_THREAD_VARIABLE \
  extern constinit thread_local __attribute__((tls_model("initial-exec")))
SIMT_THREAD_VARIABLE uint3 threadIdx;
SIMT_THREAD_VARIABLE uint3 blockIdx;
SIMT_THREAD_VARIABLE dim3 blockDim;
SIMT_THREAD_VARIABLE dim3 gridDim;
#undef SIMT_THREAD_VARIABLE
inline constexpr int warpSize = 32;

namespace braid::simt::detail {

/// A static shared array of a kernel.
struct SharedArray {
  std::size_t bytes, align;
  const char* name;
  const char* file;
  int line;
  std::size_t element;
};
void* shared_array(const SharedArray* array);  // of the running block
void* dynamic_shared();

enum class Vote { count, all, any };
void touch_constant(const void* p, std::size_t bytes, Location where);
void block_barrier(Location where);
int block_vote(int predicate, Vote vote, Location where);

/// The operations in which the lanes of a warp synchronize.
enum class WarpOp : std::uint8_t { sync, shuffle, ballot, match, mma, ldmatrix };
void warp_barrier(unsigned mask, Location where);
/// Where a shuffle takes its value from. `own`: the calling lane. `edge`: a lane that may be
/// outside the mask, as in a sum over half a warp with __shfl_down_sync; the value is then
/// undefined (NaN here). `exact`: a lane that must take part.
enum class Source { own, edge, exact };
std::uint64_t warp_shuffle(unsigned mask, std::uint64_t value, int source, Source kind,
                           Location where);
unsigned warp_ballot(unsigned mask, bool predicate, Location where);
unsigned warp_match(unsigned mask, std::uint64_t value, Location where);
unsigned active_mask();
int lane_id();
void fence(bool whole_device);

template <class T>
inline T shuffle(unsigned mask, T value, int source, Source kind, Location where) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>,
                "a shuffle moves 8 bytes at most");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = warp_shuffle(mask, bits, source, kind, where);
  __builtin_memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

}  // namespace braid::simt::detail

namespace braid::simt {
/// printf of one thread, with its coordinates: `[b0,0,0 t2,0,0 w0 l2] step 1: received 3`. Writes
/// to stdout, or to the function set with set_trace_handler.
void trace(const char* format, ...) __attribute__((format(printf, 1, 2)));
}  // namespace braid::simt

/// SIMT_SHARED(float, tile, [32][33]) declares a shared array of the block, with red zones around
/// it. Reports show its name. It is initially filled with NaN.
#define SIMT_SHARED(T, name, ...)                                              \
  using simt_type_##name = T __VA_ARGS__;                                      \
  static constinit const ::braid::simt::detail::SharedArray simt_array_##name{ \
      sizeof(simt_type_##name),                                                \
      alignof(simt_type_##name) < 16 ? 16 : alignof(simt_type_##name),         \
      #name,                                                                   \
      __FILE__,                                                                \
      __LINE__,                                                                \
      sizeof(T)};                                                              \
  simt_type_##name& name =                                                     \
      *static_cast<simt_type_##name*>(::braid::simt::detail::shared_array(&simt_array_##name))
/// SIMT_DYN_SHARED(float, buffer) declares the dynamic shared memory of the launch as a T*.
#define SIMT_DYN_SHARED(T, name) T* name = static_cast<T*>(::braid::simt::detail::dynamic_shared())

#define SIMT_HERE ::braid::simt::Location where = ::braid::simt::Location::current()

// ---- barriers and fences
inline void __syncthreads(SIMT_HERE) { ::braid::simt::detail::block_barrier(where); }
inline int __syncthreads_count(int predicate, SIMT_HERE) {
  return ::braid::simt::detail::block_vote(predicate, ::braid::simt::detail::Vote::count, where);
}
inline int __syncthreads_and(int predicate, SIMT_HERE) {
  return ::braid::simt::detail::block_vote(predicate, ::braid::simt::detail::Vote::all, where);
}
inline int __syncthreads_or(int predicate, SIMT_HERE) {
  return ::braid::simt::detail::block_vote(predicate, ::braid::simt::detail::Vote::any, where);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE) {
  ::braid::simt::detail::warp_barrier(mask, where);
}
inline void __threadfence_block() { ::braid::simt::detail::fence(false); }
inline void __threadfence() { ::braid::simt::detail::fence(true); }
inline void __threadfence_system() { ::braid::simt::detail::fence(true); }

// ---- shuffles and votes
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_HERE) {
  const int lane = ::braid::simt::detail::lane_id();
  return ::braid::simt::detail::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)),
                                        ::braid::simt::detail::Source::exact, where);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_HERE) {
  const int lane = ::braid::simt::detail::lane_id(), source = lane ^ bits;
  return ::braid::simt::detail::shuffle(mask, value, source,
                                        source < (lane & ~(width - 1)) + width
                                            ? ::braid::simt::detail::Source::exact
                                            : ::braid::simt::detail::Source::own,
                                        where);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  const int lane = ::braid::simt::detail::lane_id(), source = lane + static_cast<int>(delta);
  return ::braid::simt::detail::shuffle(mask, value, source,
                                        source < (lane & ~(width - 1)) + width
                                            ? ::braid::simt::detail::Source::edge
                                            : ::braid::simt::detail::Source::own,
                                        where);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  const int lane = ::braid::simt::detail::lane_id(), source = lane - static_cast<int>(delta);
  return ::braid::simt::detail::shuffle(mask, value, source,
                                        source >= (lane & ~(width - 1))
                                            ? ::braid::simt::detail::Source::edge
                                            : ::braid::simt::detail::Source::own,
                                        where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_HERE) {
  return ::braid::simt::detail::warp_ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate, SIMT_HERE) {
  return ::braid::simt::detail::warp_ballot(mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_HERE) {
  return ::braid::simt::detail::warp_ballot(mask, predicate == 0, where) == 0;
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T value, SIMT_HERE) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return ::braid::simt::detail::warp_match(mask, bits, where);
}
inline unsigned __activemask() { return ::braid::simt::detail::active_mask(); }

// ---- memset, memcpy, memmove: the compiler does not report calls of them to the checker
#if defined(__SANITIZE_THREAD__)
namespace braid::simt::detail {
void touch_bytes(const void* p, std::size_t bytes, bool write, Location where);
}  // namespace braid::simt::detail
SIMT_NO_CHECK inline void* simt_memset(void* to, int value, std::size_t n, SIMT_HERE) {
  ::braid::simt::detail::touch_bytes(to, n, true, where);
  return __builtin_memset(to, value, n);
}
SIMT_NO_CHECK inline void* simt_memcpy(void* to, const void* from, std::size_t n, SIMT_HERE) {
  ::braid::simt::detail::touch_bytes(from, n, false, where);
  ::braid::simt::detail::touch_bytes(to, n, true, where);
  return __builtin_memcpy(to, from, n);
}
SIMT_NO_CHECK inline void* simt_memmove(void* to, const void* from, std::size_t n, SIMT_HERE) {
  ::braid::simt::detail::touch_bytes(from, n, false, where);
  ::braid::simt::detail::touch_bytes(to, n, true, where);
  return __builtin_memmove(to, from, n);
}
namespace std {
using ::simt_memcpy;
using ::simt_memmove;
using ::simt_memset;
}  // namespace std
#define memset(...) simt_memset(__VA_ARGS__)
#define memcpy(...) simt_memcpy(__VA_ARGS__)
#define memmove(...) simt_memmove(__VA_ARGS__)
#endif

// ---- loads with cache hints
/// Reads memory that no thread of the grid writes; the checker reports one that does.
template <class T> SIMT_NO_CHECK inline T __ldg(const T* p, SIMT_HERE) {
  ::braid::simt::detail::touch_constant(p, sizeof(T), where);
  return *p;
}
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline void __stcs(T* p, T value) { *p = value; }
template <class T> inline void __stcg(T* p, T value) { *p = value; }

// ---- arithmetic
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __int_as_float(int i) { return std::bit_cast<float>(i); }
inline int __float_as_int(float f) { return std::bit_cast<int>(f); }
inline unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
inline float __uint_as_float(unsigned u) { return std::bit_cast<float>(u); }
inline long long __double_as_longlong(double d) { return std::bit_cast<long long>(d); }
inline double __longlong_as_double(long long i) { return std::bit_cast<double>(i); }
inline int __float2int_rn(float f) { return static_cast<int>(std::nearbyint(f)); }
inline int __float2int_rz(float f) { return static_cast<int>(f); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<std::int64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >>
                               32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
#undef SIMT_HERE

// CUDA's min and max accept mixed arithmetic types.
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
