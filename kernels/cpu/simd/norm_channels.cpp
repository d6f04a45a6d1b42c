#include <braid/core/kernel_args/norm.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/loaders.hpp"
#include "cpu/simd/norm.hpp"

// Batch normalisation of contiguous [batch, channels, inner]: sums over each channel, then each
// element is normalised with its channel's statistics.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The terms that are summed over a channel, into one or two lists.
enum class Terms { elements, deviations, gradients };

template <class E> struct Channels {
  using A = Lane<typename E::V>;
  const typename E::T* x;
  const typename E::T* dy;  // for gradients
  const A* mean;            // for deviations and gradients
  const A* rstd;            // for gradients
  std::int64_t batch, channels, inner;
};

/// Adds one row of the batch, with a channel in each lane.
template <class E, Terms terms>
BRAID_INLINE void add_lanes(const Channels<E>& in, std::int64_t row, Lane<typename E::V>* first,
                            Lane<typename E::V>* second) {
  using V = typename E::V;
  using A = Lane<V>;
  using P = Plain<A, DType::float32>;
  const typename E::T* x = in.x + row * in.channels;
  const auto add = [](A* to, V value, int k) {
    if (k == E::kLanes) store(to, load<V>(to) + value);
    else store_first(to, load_first<V>(to, k) + value, k);
  };
  const auto step = [&](std::int64_t j, int k) {
    const V v = load_lanes<E>(x + j, k);
    if constexpr (terms == Terms::elements) {
      add(first + j, v, k);
    } else {
      const V d = v - load_lanes<P>(in.mean + j, k);
      if constexpr (terms == Terms::deviations) {
        add(first + j, d * d, k);
      } else {
        const V dy = load_lanes<E>(in.dy + row * in.channels + j, k);
        add(first + j, dy, k);
        add(second + j, dy * d * load_lanes<P>(in.rstd + j, k), k);
      }
    }
  };
  std::int64_t j = 0;
  for (; j + E::kLanes <= in.channels; j += E::kLanes) step(j, E::kLanes);
  if (j < in.channels) step(j, static_cast<int>(in.channels - j));
}

/// Adds one row of the batch, one channel at a time.
template <class E, Terms terms>
BRAID_INLINE void add_runs(const Channels<E>& in, std::int64_t row, Lane<typename E::V>* first,
                           Lane<typename E::V>* second) {
  using V = typename E::V;
  for (std::int64_t c = 0; c < in.channels; ++c) {
    const std::int64_t at = (row * in.channels + c) * in.inner;
    if constexpr (terms == Terms::elements) {
      DenseSource<E> source{in.x + at};
      first[c] += reduce_all<Sum, V>(source, in.inner);
    } else if constexpr (terms == Terms::deviations) {
      SquaredDeviations<E> source{in.x + at, splat<V>(in.mean[c])};
      first[c] += reduce_all<Sum, V>(source, in.inner);
    } else {
      DenseSource<E> plain{in.dy + at};
      Moments<E> moments{in.x + at, in.dy + at, splat<V>(in.mean[c])};
      first[c] += reduce_all<Sum, V>(plain, in.inner);
      second[c] += reduce_all<Sum, V>(moments, in.inner) * in.rstd[c];
    }
  }
}

BRAID_INLINE std::int64_t tiles_of(std::int64_t batch) {
  const std::int64_t unit = rows_of_tile(batch, 1);
  return (batch + unit - 1) / unit;
}

/// first[c] (and second[c]) become the sums of channel c. Rows of the batch are added in tiles, and
/// the tiles as a tree. `parts` has room for one list (or two) per tile.
template <class E, Terms terms>
void sum_channels(const Channels<E>& in, Lane<typename E::V>* parts, Lane<typename E::V>* first,
                  Lane<typename E::V>* second, Stream& stream) {
  using V = typename E::V;
  using A = Lane<V>;
  const std::int64_t unit = rows_of_tile(in.batch, 1), tiles = tiles_of(in.batch);
  const std::int64_t apart = terms == Terms::gradients ? 2 * in.channels : in.channels;
  const auto tile = [&](std::int64_t t) {
    A* const sums = parts + t * apart;
    __builtin_memset(sums, 0, static_cast<std::size_t>(apart) * sizeof(A));
    const std::int64_t end = (t + 1) * unit < in.batch ? (t + 1) * unit : in.batch;
    for (std::int64_t row = t * unit; row < end; ++row) {
      if (in.inner == 1) add_lanes<E, terms>(in, row, sums, sums + in.channels);
      else add_runs<E, terms>(in, row, sums, sums + in.channels);
    }
  };
  if (tiles <= 1) tile(0);
  else parallel_for(stream, tiles, tile);
  const auto to = [&](A* out) {
    return [=](std::int64_t j, int k, V sum) {
      if (k == kLanesOf<V>) store(out + j, sum);
      else store_first(out + j, sum, k);
    };
  };
  join_tiles<E>(parts, apart, tiles, in.channels, stream, to(first));
  if constexpr (terms == Terms::gradients)
    join_tiles<E>(parts + in.channels, apart, tiles, in.channels, stream, to(second));
}

template <class E> void norm_channels_of(const NormChannelsArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  using P = Plain<A, DType::float32>;
  A* const mean = static_cast<A*>(args.mean);
  A* const rstd = static_cast<A*>(args.rstd);
  const Channels<E> in{
      static_cast<const T*>(args.x), nullptr, mean, nullptr, args.batch, args.channels, args.inner};
  if (!args.given) {
    A* const var = static_cast<A*>(args.var);
    A* const parts = static_cast<A*>(
        scratch(static_cast<std::size_t>(tiles_of(args.batch) * args.channels) * sizeof(A)));
    const A count = static_cast<A>(args.batch * args.inner);
    sum_channels<E, Terms::elements>(in, parts, mean, nullptr, stream);
    for (std::int64_t c = 0; c < args.channels; ++c) mean[c] /= count;
    sum_channels<E, Terms::deviations>(in, parts, var, nullptr, stream);
    for (std::int64_t c = 0; c < args.channels; ++c) {
      var[c] /= count;
      rstd[c] = A{1} / root<V>(var[c] + static_cast<A>(args.eps));
    }
  }
  const T* const weight = static_cast<const T*>(args.weight);
  const T* const bias = static_cast<const T*>(args.bias);
  for_rows(args.batch, args.channels * args.inner, stream, [&](std::int64_t row) {
    const T* x = in.x + row * args.channels * args.inner;
    T* y = static_cast<T*>(args.y) + row * args.channels * args.inner;
    if (args.inner == 1) {
      write_row<E>(y, args.channels, false, [&](std::int64_t j, int k) {
        V v = (load_lanes<E>(x + j, k) - load_lanes<P>(mean + j, k)) * load_lanes<P>(rstd + j, k);
        if (weight != nullptr) v *= load_lanes<E>(weight + j, k);
        if (bias != nullptr) v += load_lanes<E>(bias + j, k);
        return v;
      });
      return;
    }
    for (std::int64_t c = 0; c < args.channels; ++c)
      normalise_run<E>(x + c * args.inner, y + c * args.inner, args.inner, mean[c], rstd[c],
                       number<E>(weight, c, A{1}), number<E>(bias, c, A{}));
  });
}

template <class E>
void norm_channels_backward_of(const NormChannelsBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  using P = Plain<A, DType::float32>;
  const A* const mean = static_cast<const A*>(args.mean);
  const A* const rstd = static_cast<const A*>(args.rstd);
  const Channels<E> in{static_cast<const T*>(args.x),
                       static_cast<const T*>(args.dy),
                       mean,
                       rstd,
                       args.batch,
                       args.channels,
                       args.inner};
  A* const sums = static_cast<A*>(
      scratch(static_cast<std::size_t>((tiles_of(in.batch) + 1) * 2 * in.channels) * sizeof(A)));
  A* const moments = sums + in.channels;
  sum_channels<E, Terms::gradients>(in, moments + in.channels, sums, moments, stream);
  for (std::int64_t c = 0; c < in.channels; ++c) {
    if (args.dweight != nullptr) put<E>(args.dweight, c, moments[c]);
    if (args.dbias != nullptr) put<E>(args.dbias, c, sums[c]);
  }
  if (args.dx == nullptr) return;
  const A count = static_cast<A>(args.batch * args.inner);
  for (std::int64_t c = 0; c < in.channels; ++c) sums[c] /= count, moments[c] /= count;
  const T* const weight = static_cast<const T*>(args.weight);
  for_rows(args.batch, args.channels * args.inner, stream, [&](std::int64_t row) {
    const std::int64_t start = row * args.channels * args.inner;
    const T* x = in.x + start;
    const T* dy = in.dy + start;
    T* dx = static_cast<T*>(args.dx) + start;
    if (args.inner == 1) {
      write_row<E>(dx, args.channels, false, [&](std::int64_t j, int k) {
        const V r = load_lanes<P>(rstd + j, k),
                h = (load_lanes<E>(x + j, k) - load_lanes<P>(mean + j, k)) * r;
        const V v = r * (load_lanes<E>(dy + j, k) - load_lanes<P>(sums + j, k) -
                         h * load_lanes<P>(moments + j, k));
        return weight != nullptr ? v * load_lanes<E>(weight + j, k) : v;
      });
      return;
    }
    for (std::int64_t c = 0; c < args.channels; ++c) {
      const V m = splat<V>(mean[c]), r = splat<V>(rstd[c]), g = splat<V>(sums[c]),
              gh = splat<V>(moments[c]);
      const V factor = splat<V>(rstd[c] * number<E>(weight, c, A{1}));
      const std::int64_t at = c * args.inner;
      write_row<E>(dx + at, args.inner, false, [&](std::int64_t i, int k) {
        return factor *
               (load_lanes<E>(dy + at + i, k) - g - (load_lanes<E>(x + at + i, k) - m) * r * gh);
      });
    }
  });
}

}  // namespace

void norm_channels(const NormChannelsArgs& args, Stream& stream) {
  if (args.dtype < DType::float16)
    fail_dtype("norm_channels", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.channels <= 0 || args.inner <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    norm_channels_of<E>(args, stream);
    return true;
  });
}

void norm_channels_backward(const NormChannelsBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16)
    fail_dtype("norm_channels_backward", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.channels <= 0 || args.inner <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    norm_channels_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
