#pragma once
#include "conv_products.hpp"
#include "cuda/device/conv_side.cuh"
#include "cuda/device/gemm_kernels.cuh"
#include "cuda/device/gemm_small.cuh"
#include "cuda/errors.hpp"
#include "cuda/gemm_plan.hpp"
#include "cuda/kernels.hpp"

// Convolution as implicit matrix product (Chetlur et al. 2014, arXiv:1410.0759): the product of
// conv_products.hpp, whose columns are gathered from the images while they are copied to shared
// memory (device/conv_side.cuh).
namespace braid::cuda {

template <class E, class Tile>
using ConvSideA =
    ConvSide<typename E::T, true, Tile::kRows, Tile::kDepth, Tile::kBlock, Tile::kAligned>;
template <class E, class Tile, bool along_depth>
using MmaSideB =
    MmaSide<typename E::T, along_depth, Tile::kColumns, Tile::kDepth, Tile::kBlock, Tile::kAligned>;

/// y = columns of x, times weights [out, kernel, in].
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, Tile::kMinBlocks)
    conv_forward_mma(GemmParams<E> p, Gather g) {
  mma_block<E, Tile, ConvSideA<E, Tile>, MmaSideB<E, Tile, true>>(p, g, p.ldb);
}
/// dx = columns of dy, times weights [kernel, out, in].
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, Tile::kMinBlocks)
    conv_backward_data_mma(GemmParams<E> p, Gather g) {
  mma_block<E, Tile, ConvSideA<E, Tile>, MmaSideB<E, Tile, false>>(p, g, p.ldb);
}
/// dW = dyᵀ, times the columns of x.
template <class E, class Tile>
__global__ void __launch_bounds__(Tile::kBlock, Tile::kMinBlocks)
    conv_backward_weight_mma(GemmParams<E> p, Gather g) {
  using T = typename E::T;
  using SideA = MmaSide<T, false, Tile::kRows, Tile::kDepth, Tile::kBlock, Tile::kAligned>;
  using SideB = ConvSide<T, false, Tile::kColumns, Tile::kDepth, Tile::kBlock, Tile::kAligned>;
  mma_block<E, Tile, SideA, SideB>(p, p.lda, g);
}

/// The tiles of a convolution, of which the last takes operands that are not aligned to 16 bytes,
/// and the kind of the first. precision: of float32.
template <class L, class S, class U, GemmTileKind kind,
          Float32Precision precision = Float32Precision::exact>
struct ConvTiles {
  using Large = L;
  using Small = S;
  using Unaligned = U;
  static constexpr GemmTileKind kLarge = kind;
  static constexpr Float32Precision kPrecision = precision;
};

inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 31;

inline Gather gather_of(const Unfold& u) {
  Gather g;
  g.places = Divider(places_of(u)), g.width = Divider(u.grid[1]);
  g.own = Divider(u.channels / u.groups), g.across = Divider(u.kernel[1]);
  g.channels = u.channels;
  for (int d = 0; d < 2; ++d) {
    g.part[d] = Divider(u.part[d]);
    g.times[d] = static_cast<int>(u.times[d]), g.step[d] = static_cast<int>(u.step[d]);
    g.offset[d] = static_cast<int>(u.offset[d]), g.size[d] = static_cast<int>(u.size[d]);
  }
  return g;
}

/// The number of images of a launch: as many as have fewer than 2^31 pixels and positions.
inline std::int64_t images_at_a_time(const char* op, const Unfold& u) {
  const auto size = [](std::int64_t x) { return x < 0 ? -x : x; };
  for (int d = 0; d < 2; ++d) {
    // each term is below 2^62, and so is what is left after the comparison
    const std::int64_t steps = (u.grid[d] - 1) * u.times[d],
                       kernel = (u.kernel[d] - 1) * size(u.step[d]);
    if (steps >= kMostPixels || kernel >= kMostPixels ||
        steps + kernel + size(u.offset[d]) >= kMostPixels)
      fail_size(op, "positions below 2^31 in a padded image", steps + kernel + size(u.offset[d]));
  }
  const std::int64_t pixels = u.size[0] * u.size[1], places = places_of(u),
                     most = pixels > places ? pixels : places;
  if (most >= kMostPixels) fail_size(op, "images of fewer than 2^31 pixels", most);
  if (depth_of(u) >= kMostPixels)
    fail_size(op, "fewer than 2^31 weights of a channel", depth_of(u));
  return (kMostPixels - 1) / most;
}

/// The kernels of a convolution by tile.
template <class E> struct ConvKernels {
  using Function = void(GemmParams<E>, Gather);
  Function *large, *small, *unaligned;
};

/// Queues a convolution as the product `args`, one of whose operands is the columns of u.
template <class E, class Tiles>
void launch_conv(const char* op, const ConvKernels<E>& kernels, const GemmArgs& args,
                 const Unfold& u, std::int64_t batch_bias, Stream& stream) {
  using T = typename E::T;
  const GemmPlan plan = plan_gemm(args, processors_of(stream), Tiles::kPrecision);
  const Gather gather = gather_of(u);
  const bool columns = u.channels / u.groups % kWidest<T> == 0 &&
                       is_aligned<kWidest<T>>(static_cast<const T*>(u.images));
  const auto tiles = [&](const GemmParams<E>& p) {
    if (!columns || !(args.ta ? p.packs_a : p.packs_b))  // dW, and only it, has the columns as b
      launch_items<typename Tiles::Unaligned>(op, kernels.unaligned, p, stream, gather);
    else if (plan.tile == Tiles::kLarge)
      launch_items<typename Tiles::Large>(op, kernels.large, p, stream, gather);
    else launch_items<typename Tiles::Small>(op, kernels.small, p, stream, gather);
  };
  launch_parts<E>(args, plan, stream, tiles, batch_bias);
}

/// Calls f(the first image, how many) for the launches of a convolution.
template <class F> void in_launches(std::int64_t n, std::int64_t most, F f) {
  for (std::int64_t first = 0; first < n; first += most)
    f(first, n - first < most ? n - first : most);
}
template <class E> const void* image_at(const void* images, std::int64_t elements) {
  return static_cast<const typename E::T*>(images) + elements;
}

template <class E, class Tiles> void convolve(const ConvArgs& args, Stream& stream) {
  const ConvShape& s = args.shape;
  const ConvKernels<E> kernels{conv_forward_mma<E, typename Tiles::Large>,
                               conv_forward_mma<E, typename Tiles::Small>,
                               conv_forward_mma<E, typename Tiles::Unaligned>};
  Unfold u = unfold_input(s, args.x, sizeof(typename E::T));
  const std::int64_t most = images_at_a_time("conv", u), out = s.out / s.groups;
  const Scratch weight(static_cast<std::size_t>(s.out * depth_of(u)) * sizeof(typename E::T),
                       stream);
  cuda::copy(conv_detail::by_output(s, args.dtype, weight.data(), args.weight, false), stream);
  in_launches(s.n, most, [&](std::int64_t first, std::int64_t images) {
    u.images = image_at<E>(args.x, first * s.in_size[0] * s.in_size[1] * s.in);
    GemmArgs g{};
    g.dtype = args.dtype, g.tb = true;
    g.m = images * places_of(u), g.n = out, g.k = depth_of(u), g.batch = s.groups;
    g.a = u.images, g.batch_a = s.in / s.groups;
    g.b = weight.data(), g.ldb = g.k, g.batch_b = out * g.k;
    g.c = const_cast<void*>(image_at<E>(args.y, first * places_of(u) * s.out));
    g.ldc = s.out, g.batch_c = out;
    g.bias = args.bias;
    launch_conv<E, Tiles>("conv", kernels, g, u, out, stream);
  });
}

template <class E, class Tiles> void convolve(const ConvDataArgs& args, Stream& stream) {
  const ConvShape& s = args.shape;
  const ConvKernels<E> kernels{conv_backward_data_mma<E, typename Tiles::Large>,
                               conv_backward_data_mma<E, typename Tiles::Small>,
                               conv_backward_data_mma<E, typename Tiles::Unaligned>};
  Unfold u = unfold_output(s, args.dy, sizeof(typename E::T));
  const std::int64_t most = images_at_a_time("conv_backward_data", u), in = s.in / s.groups;
  const Scratch weight(static_cast<std::size_t>(s.in * depth_of(u)) * sizeof(typename E::T),
                       stream);
  cuda::copy(conv_detail::by_input(s, args.dtype, weight.data(), args.weight), stream);
  in_launches(s.n, most, [&](std::int64_t first, std::int64_t images) {
    u.images = image_at<E>(args.dy, first * s.out_size[0] * s.out_size[1] * s.out);
    GemmArgs g{};
    g.dtype = args.dtype;
    g.m = images * places_of(u), g.n = in, g.k = depth_of(u), g.batch = s.groups;
    g.a = u.images, g.batch_a = s.out / s.groups;
    g.b = weight.data(), g.ldb = in, g.batch_b = g.k * in;
    g.c = const_cast<void*>(image_at<E>(args.dx, first * places_of(u) * s.in));
    g.ldc = s.in, g.batch_c = in;
    g.bias = args.bias;
    launch_conv<E, Tiles>("conv_backward_data", kernels, g, u, in, stream);
  });
}

/// db comes with dW where there is one group: the tile of dy has it. The launches are accumulated
/// in order.
template <class E, class Tiles> void convolve(const ConvWeightArgs& args, Stream& stream) {
  const ConvShape& s = args.shape;
  const ConvKernels<E> kernels{conv_backward_weight_mma<E, typename Tiles::Large>,
                               conv_backward_weight_mma<E, typename Tiles::Small>,
                               conv_backward_weight_mma<E, typename Tiles::Unaligned>};
  Unfold u = unfold_input(s, args.x, sizeof(typename E::T));
  const std::int64_t most = images_at_a_time("conv_backward_weight", u), out = s.out / s.groups;
  const bool sums = args.db != nullptr && s.groups == 1 && s.n <= most;
  const Scratch weight(static_cast<std::size_t>(s.out * depth_of(u)) * sizeof(typename E::T),
                       stream);
  in_launches(s.n, most, [&](std::int64_t first, std::int64_t images) {
    u.images = image_at<E>(args.x, first * s.in_size[0] * s.in_size[1] * s.in);
    GemmArgs g{};
    g.dtype = args.dtype, g.ta = true, g.accumulate = first > 0;
    g.m = out, g.n = depth_of(u), g.k = images * places_of(u), g.batch = s.groups;
    g.a = image_at<E>(args.dy, first * places_of(u) * s.out), g.lda = s.out, g.batch_a = out;
    g.b = u.images, g.batch_b = s.in / s.groups;
    g.c = weight.data(), g.ldc = g.n, g.batch_c = out * g.n;
    g.sum_a = sums ? args.db : nullptr;
    launch_conv<E, Tiles>("conv_backward_weight", kernels, g, u, 0, stream);
  });
  cuda::copy(conv_detail::by_output(s, args.dtype, args.dw, weight.data(), true), stream);
  if (args.db != nullptr && !sums) cuda::reduce(bias_sums(args), stream);
}

}  // namespace braid::cuda
