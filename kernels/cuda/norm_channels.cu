#include <braid/core/internal/kernel_args/norm.hpp>

#include "cuda/device/loop.cuh"
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/norm_sums.hpp"

// Batch normalisation of contiguous [batch, channels, inner]: the sums of norm_sums.cu, then each
// element is normalised with its channel's statistics.
namespace braid::cuda {

/// The computation of an element: y from x, or dx from x and dy.
template <class E> struct ByChannel {
  using T = typename E::T;
  using A = typename E::A;
  const T* x;
  const T* dy;  // null in the forward pass
  T* out;
  const T* weight;  // or null
  const T* bias;
  const A* mean;
  const A* rstd;
  const A* means;  // of dy and dy h, for the backward pass
  std::int64_t n, channels, inner;
  bool packs = false;
  Divider by_inner{}, by_channels{};
  std::int64_t channel_step = 0, place_step = 0;  // from a thread's pack to its next one

  BRAID_DEVICE A of(A value, A gradient, std::int64_t c) const {
    const A r = rstd[c], h = (value - mean[c]) * r,
            w = weight == nullptr ? A(1) : E::load(weight[c]);
    if (dy == nullptr) return h * w + (bias == nullptr ? A(0) : E::load(bias[c]));
    return r * w * (gradient - means[c] - h * means[channels + c]);
  }
};

/// The division is in the first pack only, whose index is small; later places follow by addition.
template <class E> __global__ void __launch_bounds__(kThreads) norm_by_channel(ByChannel<E> p) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const std::int64_t first = grid_thread() * width, run = p.by_inner.divide(first, true);
  std::int64_t place = first - run * p.inner,
               channel = run - p.by_channels.divide(run, true) * p.channels;
  for (std::int64_t at = first; at < p.n; at += grid_threads() * width) {
    A v[width], d[width];
    load_row<E>(v, p.x, at, p.n, p.packs, A(0));
#pragma unroll
    for (int k = 0; k < width; ++k) d[k] = A(0);
    if (p.dy != nullptr) load_row<E>(d, p.dy, at, p.n, p.packs, A(0));
    std::int64_t c = channel, l = place;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      v[k] = p.of(v[k], d[k], c);
      if (++l == p.inner) {
        l = 0;
        if (++c == p.channels) c = 0;
      }
    }
    store_row<E>(p.out, at, p.n, p.packs, v);
    place += p.place_step;
    channel += p.channel_step;
    if (place >= p.inner) place -= p.inner, ++channel;
    if (channel >= p.channels) channel -= p.channels;
  }
}

template <class E> void by_channel(const char* op, ByChannel<E> p, Stream& stream) {
  constexpr int width = kWidest<typename E::T>;
  constexpr std::int64_t most = INT32_MAX;  // above any first index: the quotient is 0
  p.packs = p.n % width == 0 && is_aligned<width>(p.x) && is_aligned<width>(p.out) &&
            (p.dy == nullptr || is_aligned<width>(p.dy));
  const unsigned blocks = blocks_for(p.n, width * kThreads);
  const std::int64_t step = static_cast<std::int64_t>(blocks) * kThreads * width;
  p.by_inner = Divider(p.inner < most ? p.inner : most);
  p.by_channels = Divider(p.channels < most ? p.channels : most);
  p.place_step = step % p.inner;
  p.channel_step = step / p.inner % p.channels;
  run(op, norm_by_channel<E>, blocks, kThreads, stream, p);
}

void norm_channels(const NormChannelsArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("norm_channels", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.channels <= 0 || args.inner <= 0) return;
  if (!args.given) {
    ChannelSums sums{.dtype = args.dtype,
                     .terms = ChannelTerms::elements,
                     .x = args.x,
                     .dy = nullptr,
                     .mean = args.mean,
                     .rstd = args.rstd,
                     .var = args.var,
                     .weight = nullptr,
                     .bias = nullptr,
                     .means = nullptr,
                     .eps = args.eps,
                     .batch = args.batch,
                     .channels = args.channels,
                     .inner = args.inner,
                     .groups = 0};
    channel_sums("norm_channels", sums, stream);
    sums.terms = ChannelTerms::deviations;
    channel_sums("norm_channels", sums, stream);
  }
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    by_channel(
        "norm_channels",
        ByChannel<E>{static_cast<const T*>(args.x), nullptr, static_cast<T*>(args.y),
                     static_cast<const T*>(args.weight), static_cast<const T*>(args.bias),
                     static_cast<const A*>(args.mean), static_cast<const A*>(args.rstd), nullptr,
                     args.batch * args.channels * args.inner, args.channels, args.inner},
        stream);
  });
}

void norm_channels_backward(const NormChannelsBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("norm_channels_backward", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.channels <= 0 || args.inner <= 0) return;
  const Scratch means(static_cast<std::size_t>(2 * args.channels) * sizeof(double), stream);
  channel_sums("norm_channels_backward",
               ChannelSums{.dtype = args.dtype,
                           .terms = ChannelTerms::gradients,
                           .x = args.x,
                           .dy = args.dy,
                           .mean = const_cast<void*>(args.mean),
                           .rstd = const_cast<void*>(args.rstd),
                           .var = nullptr,
                           .weight = args.dweight,
                           .bias = args.dbias,
                           .means = args.dx == nullptr ? nullptr : means.data(),
                           .eps = 0,
                           .batch = args.batch,
                           .channels = args.channels,
                           .inner = args.inner,
                           .groups = 0},
               stream);
  if (args.dx == nullptr) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    by_channel("norm_channels_backward",
               ByChannel<E>{static_cast<const T*>(args.x), static_cast<const T*>(args.dy),
                            static_cast<T*>(args.dx), static_cast<const T*>(args.weight), nullptr,
                            static_cast<const A*>(args.mean), static_cast<const A*>(args.rstd),
                            static_cast<const A*>(means.data()),
                            args.batch * args.channels * args.inner, args.channels, args.inner},
               stream);
  });
}

}  // namespace braid::cuda
