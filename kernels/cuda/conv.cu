#include <braid/core/internal/kernel_args/conv.hpp>

#include "conv_products.hpp"
#include "cuda/conv_mma.hpp"
#include "cuda/device/loop.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/gemm_plan.hpp"
#include "cuda/kernels.hpp"

// Convolutions of float32 and float64 as matrix products (conv_products.hpp). This file gathers the
// columns. Those on tensor cores are in conv_mma.cu and conv_tf32.cu.
namespace braid::cuda {

/// Parameters of conv_columns. It copies units of U, the widest type whose size divides the
/// channels of a group evenly. All bits 0 represent the number 0.
struct UnfoldPlan {
  Divider units, across, down, grid_width, places, rows;  // across, down: sizes of the kernel
  std::int64_t n = 0;
  std::int64_t channels, own;  // units of a pixel, and of one group in it
  std::int64_t times[2], step[2], offset[2], size[2], part[2];
  bool narrow = true;
};

template <class U>
__global__ void __launch_bounds__(kThreads)
    conv_columns(const U* images, U* columns, UnfoldPlan p, U zero) {
  for (std::int64_t e = grid_thread(); e < p.n; e += grid_threads()) {
    const auto cut = [&](const Divider& by, std::int64_t& rest) {
      const std::int64_t high = by.divide(rest, p.narrow), low = rest - high * by.divisor;
      rest = high;
      return low;
    };
    std::int64_t rest = e;
    const std::int64_t c = cut(p.units, rest), j = cut(p.across, rest), i = cut(p.down, rest),
                       row = cut(p.rows, rest), group = rest;
    std::int64_t place = row;
    const std::int64_t x = cut(p.grid_width, place) * p.times[1] + j * p.step[1] + p.offset[1];
    const std::int64_t image = p.places.divide(row, p.narrow);
    const std::int64_t y =
        (place - image * (p.places.divisor / p.grid_width.divisor)) * p.times[0] + i * p.step[0] +
        p.offset[0];
    const std::int64_t iy = p.part[0] == 1 ? y : y / p.part[0],
                       ix = p.part[1] == 1 ? x : x / p.part[1];
    const bool inside = y >= 0 && x >= 0 && iy < p.size[0] && ix < p.size[1] &&
                        iy * p.part[0] == y && ix * p.part[1] == x;
    columns[e] =
        inside
            ? images[((image * p.size[0] + iy) * p.size[1] + ix) * p.channels + group * p.own + c]
            : zero;
  }
}

struct ConvEngine {
  static constexpr std::int64_t kColumns = 64 * 1024 * 1024;
  Stream& stream;

  template <class F> void with_memory(std::size_t bytes, F f) {
    const Scratch scratch(bytes, stream);
    f(scratch.data());
  }
  template <class U>
  void unfold_as(const Unfold& u, std::int64_t first, std::int64_t images, void* columns) {
    const std::int64_t per = static_cast<std::int64_t>(sizeof(U)) / u.bytes,
                       own = u.channels / u.groups / per, rows = images * places_of(u);
    UnfoldPlan p;
    p.units = Divider(own), p.across = Divider(u.kernel[1]), p.down = Divider(u.kernel[0]),
    p.grid_width = Divider(u.grid[1]);
    p.places = Divider(places_of(u)), p.rows = Divider(rows);
    p.n = u.groups * rows * u.kernel[0] * u.kernel[1] * own;
    p.channels = u.channels / per, p.own = own;
    for (int d = 0; d < 2; ++d)
      p.times[d] = u.times[d], p.step[d] = u.step[d], p.offset[d] = u.offset[d],
      p.size[d] = u.size[d], p.part[d] = u.part[d];
    p.narrow = p.n < std::int64_t{1} << 31;
    const U* const from =
        static_cast<const U*>(u.images) + first * u.size[0] * u.size[1] * p.channels;
    run("conv", conv_columns<U>, blocks_for(p.n, kThreads), kThreads, stream, from,
        static_cast<U*>(columns), p, U{});
  }
  void unfold(const Unfold& u, std::int64_t first, std::int64_t images, void* columns) {
    const bool wide = u.channels / u.groups * u.bytes % 16 == 0 &&
                      reinterpret_cast<std::uintptr_t>(u.images) % 16 == 0;
    if (wide) unfold_as<uint4>(u, first, images, columns);
    else if (u.bytes == 4) unfold_as<std::uint32_t>(u, first, images, columns);
    else unfold_as<std::uint64_t>(u, first, images, columns);
  }
  void copy(const CopyArgs& args) { cuda::copy(args, stream); }
  void gemm(const GemmArgs& args) { cuda::gemm(args, stream); }
  void reduce(const ReduceArgs& args) { cuda::reduce(args, stream); }
};

namespace {

/// k of the matrix product that a convolution is.
std::int64_t depth_of(const ConvArgs& args) {
  return depth_of(unfold_input(args.shape, args.x, size_of(args.dtype)));
}
std::int64_t depth_of(const ConvDataArgs& args) {
  return depth_of(unfold_output(args.shape, args.dy, size_of(args.dtype)));
}
std::int64_t depth_of(const ConvWeightArgs& args) {
  return args.shape.n * places_of(unfold_input(args.shape, args.x, size_of(args.dtype)));
}

}  // namespace

template <class Args> void convolve(const char* op, const Args& args, Stream& stream) {
  const bool narrow = size_of(args.dtype) == 2;
  if (!narrow && args.dtype != DType::float32 && args.dtype != DType::float64)
    fail_dtype(op, "float32 or float64", args.dtype);  // the CPU's text
  if (args.shape.n <= 0) return;
  if (narrow) return conv_mma(args, stream);
  if (const Float32Precision precision = precision_for(depth_of(args), float32_precision());
      args.dtype == DType::float32 && precision != Float32Precision::exact)
    return conv_tf32(args, precision, stream);
  ConvEngine engine{stream};
  conv_products(args, engine);
}

void conv(const ConvArgs& args, Stream& stream) { convolve("conv", args, stream); }
void conv_backward_data(const ConvDataArgs& args, Stream& stream) {
  convolve("conv_backward_data", args, stream);
}
void conv_backward_weight(const ConvWeightArgs& args, Stream& stream) {
  convolve("conv_backward_weight", args, stream);
}

}  // namespace braid::cuda
