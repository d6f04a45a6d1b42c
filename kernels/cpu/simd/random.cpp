#include <braid/core/kernel_args/random.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/philox_blocks.hpp"

// Random numbers, many blocks at a time. <braid/core/philox.hpp> defines their bits; its functions
// run here on vectors, with a block in each lane.
namespace braid::cpu::BRAID_ISA {
namespace {

// elements; a multiple of what one step of any kernel generates
constexpr std::int64_t kTile = 16 * 1024;

/// The draws of kFloatLanes blocks: d0 of block i in first[i], d1 in second[i].
struct Draws {
  std::uint64_t first[kFloatLanes], second[kFloatLanes];
};
BRAID_INLINE Draws draws_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  const Blocks b = blocks_at(seed, stream, block);
  std::uint32_t w[4][kFloatLanes];
  for (int j = 0; j < 4; ++j) store(w[j], b.w[j]);
  Draws d;
  for (int i = 0; i < kFloatLanes; ++i) {
    d.first[i] = w[0][i] | static_cast<std::uint64_t>(w[1][i]) << 32;
    d.second[i] = w[2][i] | static_cast<std::uint64_t>(w[3][i]) << 32;
  }
  return d;
}

/// Returns the largest number of E below `high`, the upper limit of uniform numbers.
template <class E> Lane<typename E::V> below(double high) {
  typename E::T t = E::from_double(high);
  using U = std::conditional_t<sizeof(t) == 2, std::uint16_t,
                               std::conditional_t<sizeof(t) == 4, std::uint32_t, std::uint64_t>>;
  const auto value = [&] { return E::load_first(&t, 1)[0]; };
  if (static_cast<double>(value()) < high || !(value() == value())) return value();
  U bits = __builtin_bit_cast(U, t);
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  // high is 0: the negative number closest to 0
  if ((bits & static_cast<U>(~sign)) == 0) bits = static_cast<U>(sign | 1);
  else bits = static_cast<U>((bits & sign) != 0 ? bits + 1 : bits - 1);
  t = __builtin_bit_cast(typename E::T, bits);
  return value();
}

/// Maps standard numbers to the requested distribution: low + u * range, at most `limit`; or mean +
/// z * deviation.
template <class A> struct Scaling {
  A offset, factor, limit;
};

/// Writes kFloatLanes blocks of four 32-bit elements to `out`, in order.
template <RandomKind kind>
BRAID_INLINE void fill_32(float* out, const Blocks& b, const Scaling<float>& scaling) {
  const VF offset = splat<VF>(scaling.offset), factor = splat<VF>(scaling.factor);
  VF value[4];
  if constexpr (kind == RandomKind::uniform) {
    const VF limit = splat<VF>(scaling.limit);
    for (int j = 0; j < 4; ++j) {
      const VF u = __builtin_convertvector((VI)(b.w[j] >> 8), VF) * 0x1p-24f;
      const VF x = fused_mul_add(u, factor, offset);
      value[j] = x > limit ? limit : x;
    }
  } else {
    for (int j = 0; j < 4; j += 2) {
      detail::normal_pair_32<VectorRandom>(b.w[j], b.w[j + 1], value[j], value[j + 1]);
      value[j] = fused_mul_add(value[j], factor, offset);
      value[j + 1] = fused_mul_add(value[j + 1], factor, offset);
    }
  }
  float lanes[4][kFloatLanes];
  for (int j = 0; j < 4; ++j) store(lanes[j], value[j]);
  for (int i = 0; i < kFloatLanes; ++i)
    for (int j = 0; j < 4; ++j) out[4 * i + j] = lanes[j][i];
}

/// Returns kDoubleLanes elements, one from each block.
template <RandomKind kind>
BRAID_INLINE VD make_64(const std::uint64_t* first, const std::uint64_t* second,
                        const Scaling<double>& scaling) {
  const VD offset = splat<VD>(scaling.offset), factor = splat<VD>(scaling.factor);
  if constexpr (kind == RandomKind::uniform) {
    const VD limit = splat<VD>(scaling.limit);
    const VD x = fused_mul_add(__builtin_convertvector((VL)(load<VUL>(first) >> 11), VD) * 0x1p-53,
                               factor, offset);
    return x > limit ? limit : x;
  } else {
    return fused_mul_add(
        detail::normal_64<VectorRandom, VD, VUL>(load<VUL>(first), load<VUL>(second)), factor,
        offset);
  }
}

/// Fills elements [begin, end); begin is a multiple of 4 * kFloatLanes.
template <class E, RandomKind kind>
void fill_range(const RandomArgs& args, const Scaling<Lane<typename E::V>>& scaling,
                std::int64_t begin, std::int64_t end) {
  using T = typename E::T;
  T* out = static_cast<T*>(args.out);
  if constexpr (kThroughFloat<E>) {
    constexpr int step = 4 * kFloatLanes;
    alignas(64) float buffer[step];
    for (std::int64_t i = begin; i < end; i += step) {
      fill_32<kind>(buffer, blocks_at(args.seed, args.stream, static_cast<std::uint64_t>(i) / 4),
                    scaling);
      const int count = end - i < step ? static_cast<int>(end - i) : step;
      int j = 0;
      for (; j + kFloatLanes <= count; j += kFloatLanes)
        E::store(out + i + j, load<VF>(buffer + j));
      if (j < count) E::store_first(out + i + j, load<VF>(buffer + j), count - j);
    }
  } else {
    for (std::int64_t i = begin; i < end; i += kFloatLanes) {
      const Draws d = draws_at(args.seed, args.stream, static_cast<std::uint64_t>(i));
      for (int j = 0; j < kFloatLanes && i + j < end; j += kDoubleLanes) {
        const VD value = make_64<kind>(d.first + j, d.second + j, scaling);
        if (end - i - j >= kDoubleLanes) E::store(out + i + j, value);
        else E::store_first(out + i + j, value, static_cast<int>(end - i - j));
      }
    }
  }
}

void fill_integers(const RandomArgs& args, std::int64_t begin, std::int64_t end) {
  std::int64_t* out = static_cast<std::int64_t*>(args.out);
  const std::uint64_t range =
      static_cast<std::uint64_t>(args.ihigh) - static_cast<std::uint64_t>(args.ilow);
  for (std::int64_t i = begin; i < end; i += kFloatLanes) {
    const Draws d = draws_at(args.seed, args.stream, static_cast<std::uint64_t>(i));
    for (int j = 0; j < kFloatLanes && i + j < end; ++j)
      out[i + j] = static_cast<std::int64_t>(static_cast<std::uint64_t>(args.ilow) +
                                             multiply_high(d.first[j], range));
  }
}

template <class F> BRAID_INLINE void for_tiles(std::int64_t n, Stream& stream, F f) {
  const auto tile = [&](std::int64_t t) {
    f(t * kTile, (t + 1) * kTile < n ? (t + 1) * kTile : n);
  };
  if (n <= kTile) tile(0);
  else parallel_for(stream, (n + kTile - 1) / kTile, tile);
}

template <class E> void random_of(const RandomArgs& args, Stream& stream) {
  using A = Lane<typename E::V>;
  if (args.kind == RandomKind::uniform) {
    const A limit = args.low < args.high ? below<E>(args.high) : static_cast<A>(args.low);
    const Scaling<A> scaling{static_cast<A>(args.low), static_cast<A>(args.high - args.low), limit};
    for_tiles(args.n, stream, [&](std::int64_t begin, std::int64_t end) {
      fill_range<E, RandomKind::uniform>(args, scaling, begin, end);
    });
  } else {
    const Scaling<A> scaling{static_cast<A>(args.low), static_cast<A>(args.high), A{}};
    for_tiles(args.n, stream, [&](std::int64_t begin, std::int64_t end) {
      fill_range<E, RandomKind::normal>(args, scaling, begin, end);
    });
  }
}

}  // namespace

void random(const RandomArgs& args, Stream& stream) {
  if (args.kind == RandomKind::integers) {
    if (args.dtype != DType::int64) fail_dtype("random", "int64 for integers", args.dtype);
    if (args.n > 0)
      for_tiles(args.n, stream,
                [&](std::int64_t begin, std::int64_t end) { fill_integers(args, begin, end); });
    return;
  }
  if (args.dtype < DType::float16) fail_dtype("random", "a floating-point dtype", args.dtype);
  if (args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    random_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
