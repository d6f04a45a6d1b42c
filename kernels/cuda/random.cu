#include <bit>

#include <braid/core/internal/kernel_args/random.hpp>
#include <braid/core/internal/philox.hpp>

#include "cuda/device/loop.cuh"
#include "cuda/device/random.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Random numbers with the bits that <braid/core/internal/philox.hpp> defines. A Philox block gives
// four elements of up to 32 bits, or one of 64; a thread writes 16 bytes. This file is compiled
// without contraction (-fmad=false, -ffp-contract=off): every fused multiply-add is explicit.
namespace braid::cuda {

/// low + u * range, at most `limit`; or mean + z * deviation.
template <class A> struct Scaling {
  A offset, factor, limit;
};
/// In a separate version of each kernel, because the pointer takes registers.
struct RecordedKey {
  std::uint64_t seed, stream;
  const RandomShift* shift;
};
struct Key {
  std::uint64_t seed, stream;
};

BRAID_DEVICE const Key& present(const Key& key) { return key; }
BRAID_DEVICE Key present(const RecordedKey& key) {
  const RandomOf now(key.seed, key.stream, key.shift);
  return {now.seed, now.stream};
}

/// Calls f(key of the arguments).
template <class F> void with_key(const RandomArgs& args, F f) {
  if (args.shift != nullptr) f(RecordedKey{args.seed, args.stream, args.shift});
  else f(Key{args.seed, args.stream});
}

template <class A> BRAID_DEVICE A scaled_uniform(A u, const Scaling<A>& scaling) {
  const A x = detail::ScalarRandom::fma(u, scaling.factor, scaling.offset);
  return x > scaling.limit ? scaling.limit : x;
}

/// Stores the numbers of the pack whose index is below n.
template <class T, int N>
BRAID_DEVICE void store_numbers(T* out, std::int64_t at, std::int64_t n, bool aligned,
                                const Pack<T, N>& pack) {
  if (aligned && at + N <= n) {
    store_pack(out + at, pack);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (at + k < n) out[at + k] = pack.v[k];
  }
}

/// Elements of at most 32 bits, computed in float.
template <class E, bool normal, class K>
__global__ void __launch_bounds__(kThreads)
    random_32(typename E::T* out, std::int64_t n, K key, Scaling<float> scaling, bool aligned) {
  const Key& random = present(key);
  constexpr int width = kWidest<typename E::T>;
  for (std::int64_t p = grid_thread(); p * width < n; p += grid_threads()) {
    Pack<typename E::T, width> pack;
    PhiloxBlock words;
#pragma unroll
    for (int k = 0; k < width; k += 2) {
      if (k % 4 == 0)
        words =
            philox(random.seed, random.stream, static_cast<std::uint64_t>(p * (width / 4) + k / 4));
      float first, second;
      if constexpr (normal) {
        detail::normal_pair_32<detail::ScalarRandom, float, std::uint32_t>(
            words.w[k % 4], words.w[k % 4 + 1], first, second);
        first = detail::ScalarRandom::fma(first, scaling.factor, scaling.offset);
        second = detail::ScalarRandom::fma(second, scaling.factor, scaling.offset);
      } else {
        first = scaled_uniform(static_cast<float>(words.w[k % 4] >> 8) * 0x1p-24f, scaling);
        second = scaled_uniform(static_cast<float>(words.w[k % 4 + 1] >> 8) * 0x1p-24f, scaling);
      }
      pack.v[k] = E::store(first);
      pack.v[k + 1] = E::store(second);
    }
    store_numbers(out, p * width, n, aligned, pack);
  }
}

template <bool normal, class K>
__global__ void __launch_bounds__(kThreads)
    random_64(double* out, std::int64_t n, K key, Scaling<double> scaling, bool aligned) {
  const Key& random = present(key);
  for (std::int64_t p = grid_thread(); p * 2 < n; p += grid_threads()) {
    Pack<double, 2> pack;
    for (int k = 0; k < 2; ++k) {
      const PhiloxBlock b =
          philox(random.seed, random.stream, static_cast<std::uint64_t>(p * 2 + k));
      const std::uint64_t first = b.w[0] | static_cast<std::uint64_t>(b.w[1]) << 32,
                          second = b.w[2] | static_cast<std::uint64_t>(b.w[3]) << 32;
      if constexpr (normal) {
        const double z =
            detail::normal_64<detail::ScalarRandom, double, std::uint64_t>(first, second);
        pack.v[k] = detail::ScalarRandom::fma(z, scaling.factor, scaling.offset);
      } else {
        pack.v[k] = scaled_uniform(static_cast<double>(first >> 11) * 0x1p-53, scaling);
      }
    }
    store_numbers(out, p * 2, n, aligned, pack);
  }
}

template <class K>
__global__ void __launch_bounds__(kThreads)
    random_integers(std::int64_t* out, std::int64_t n, K key, std::int64_t low, std::int64_t high,
                    bool aligned) {
  const Key& random = present(key);
  for (std::int64_t p = grid_thread(); p * 2 < n; p += grid_threads()) {
    Pack<std::int64_t, 2> pack;
    for (int k = 0; k < 2; ++k)
      pack.v[k] = random_integer(random.seed, random.stream, static_cast<std::uint64_t>(p * 2 + k),
                                 low, high);
    store_numbers(out, p * 2, n, aligned, pack);
  }
}

/// Returns the largest number of T below `high`, the upper limit of uniform numbers. T is one of
/// the engine's own types, because this runs on the host.
template <class T> double below(double high) {
  using U = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const auto value = [](T t) {
    if constexpr (sizeof(T) == 2) return static_cast<double>(static_cast<float>(t));
    else return static_cast<double>(t);
  };
  T t;
  if constexpr (sizeof(T) == 2) t = T(static_cast<float>(high));
  else t = static_cast<T>(high);
  if (value(t) < high || !(value(t) == value(t))) return value(t);
  U bits = std::bit_cast<U>(t);
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  // high is 0: the negative number closest to 0
  if ((bits & static_cast<U>(~sign)) == 0) bits = static_cast<U>(sign | 1);
  else bits = static_cast<U>((bits & sign) != 0 ? bits + 1 : bits - 1);
  return value(std::bit_cast<T>(bits));
}
double below(DType t, double high) {
  switch (t) {
    case DType::float16: return below<float16>(high);
    case DType::bfloat16: return below<bfloat16>(high);
    case DType::float32: return below<float>(high);
    default: return below<double>(high);
  }
}

template <class E, bool normal> void random_of(const RandomArgs& args, Stream& stream) {
  using A = typename E::A;
  using T = typename E::T;
  const double factor = normal ? args.high : args.high - args.low;
  const double limit = args.low < args.high ? below(args.dtype, args.high) : args.low;
  const Scaling<A> scaling{static_cast<A>(args.low), static_cast<A>(factor), static_cast<A>(limit)};
  T* out = static_cast<T*>(args.out);
  with_key(args, [&]<class K>(const K& key) {
    if constexpr (std::is_same_v<T, double>) {
      run("random", random_64<normal, K>, blocks_for(args.n, 2 * kThreads), kThreads, stream, out,
          args.n, key, scaling, is_aligned<2>(out));
    } else {
      constexpr int width = kWidest<T>;
      run("random", random_32<E, normal, K>, blocks_for(args.n, width * kThreads), kThreads, stream,
          out, args.n, key, scaling, is_aligned<width>(out));
    }
  });
}

void random(const RandomArgs& args, Stream& stream) {
  if (args.kind == RandomKind::integers) {
    if (args.dtype != DType::int64) fail_dtype("random", "int64 for integers", args.dtype);
    if (args.n <= 0) return;
    std::int64_t* const out = static_cast<std::int64_t*>(args.out);
    return with_key(args, [&]<class K>(const K& key) {
      run("random", random_integers<K>, blocks_for(args.n, 2 * kThreads), kThreads, stream, out,
          args.n, key, args.ilow, args.ihigh, is_aligned<2>(out));
    });
  }
  if (!is_floating(args.dtype)) fail_dtype("random", "a floating-point dtype", args.dtype);
  if (args.n <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    if (args.kind == RandomKind::uniform) random_of<E, false>(args, stream);
    else random_of<E, true>(args, stream);
  });
}

}  // namespace braid::cuda
