#pragma once
#include <braid/core/internal/kernel_args/conv.hpp>
#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/internal/kernel_args/reduce.hpp>

#include "gemm_sums.hpp"

// Convolution as matrix products, im2col (Chellapilla, Puri, Simard 2006). Each position of the
// output becomes one row of a column matrix: the input values that the kernel covers there. The
// columns are multiplied by the weights. With channels last, the result of that product is the
// output image.
// Used by the CPU's own loops and by CUDA. They differ in the Engine, which has:
//   e.with_memory(bytes, f)               calls f(a block of the device's memory)
//   e.unfold(u, first, images, columns)   gathers the columns of some images
//   e.copy, e.gemm, e.reduce              run the kernels of those names
//   Engine::kColumns                      bytes of columns at a time; images are processed in
//                                         chunks that fit, or one at a time
// All functions are static, or templates over an Engine of one file: see cpu/simd/kernels.hpp.
namespace braid {

/// Describes which values are gathered. Output position o and kernel index k read the image at p /
/// part, with p = o * times + k * step + offset, if part divides p and the position is inside the
/// image. Otherwise the value is 0. The columns are [groups, images * positions, kernel height,
/// kernel width, channels / groups].
struct Unfold {
  const void* images;  // channels last
  std::int64_t channels, groups, bytes /* of an element */;
  std::int64_t size[2], grid[2], kernel[2], times[2], step[2], offset[2], part[2];
};
[[nodiscard, maybe_unused]] static std::int64_t places_of(const Unfold& u) {
  return u.grid[0] * u.grid[1];
}
// length of a row
[[nodiscard, maybe_unused]] static std::int64_t depth_of(const Unfold& u) {
  return u.kernel[0] * u.kernel[1] * (u.channels / u.groups);
}
/// True if the images themselves can be used as the columns.
[[nodiscard, maybe_unused]] static bool is_plain(const Unfold& u) {
  bool same = true;
  for (int d = 0; d < 2; ++d)
    same = same && u.kernel[d] == 1 && u.times[d] == 1 && u.part[d] == 1 && u.offset[d] == 0 &&
           u.size[d] == u.grid[d];
  return same;
}

/// The gather from x, for the positions of y.
[[maybe_unused]] static Unfold unfold_input(const ConvShape& s, const void* x, std::int64_t bytes) {
  Unfold u{x, s.in, s.groups, bytes, {}, {}, {}, {}, {}, {}, {}};
  for (int d = 0; d < 2; ++d) {
    u.size[d] = s.in_size[d], u.grid[d] = s.out_size[d], u.kernel[d] = s.kernel[d];
    u.times[d] = s.stride[d], u.step[d] = s.dilation[d], u.offset[d] = -s.pad[d], u.part[d] = 1;
  }
  return u;
}
/// The gather from dy, for the positions of x: each reads the values of dy that it contributed to.
[[maybe_unused]] static Unfold unfold_output(const ConvShape& s, const void* dy,
                                             std::int64_t bytes) {
  Unfold u{dy, s.out, s.groups, bytes, {}, {}, {}, {}, {}, {}, {}};
  for (int d = 0; d < 2; ++d) {
    u.size[d] = s.out_size[d], u.grid[d] = s.in_size[d], u.kernel[d] = s.kernel[d];
    u.times[d] = 1, u.step[d] = -s.dilation[d], u.offset[d] = s.pad[d], u.part[d] = s.stride[d];
  }
  return u;
}

/// The reduction that computes db.
[[nodiscard, maybe_unused]] static ReduceArgs bias_sums(const ConvWeightArgs& args) {
  const ConvShape& s = args.shape;
  GemmArgs g{};  // dW = dyᵀ, times the columns
  g.dtype = args.dtype, g.ta = true, g.sum_a = args.db;
  g.m = s.out, g.k = s.n * s.out_size[0] * s.out_size[1];
  g.a = args.dy, g.lda = s.out;
  return row_sums_of_a(g);
}

namespace conv_detail {

/// A copy between two memory layouts of one block. Sizes are given outermost first, with the
/// strides of `to` and of `from`.
[[maybe_unused]] static CopyArgs rearrange(DType dtype, void* to, const void* from, int rank,
                                           const std::int64_t* size, const std::int64_t* to_stride,
                                           const std::int64_t* from_stride) {
  CopyArgs args{};
  args.to = args.from = dtype;
  args.out = to;
  args.x = from;
  args.loop.n = 1;
  for (int d = 0; d < rank; ++d) {
    if (size[d] == 1) continue;
    const int at = args.loop.rank++;
    args.loop.size[at] = size[d];
    args.loop.stride[0][at] = to_stride[d];
    args.loop.stride[1][at] = from_stride[d];
    args.loop.n *= size[d];
  }
  return args;
}

/// Copies weights [out, in / groups, kernel] to [out, kernel, in / groups], or back.
[[maybe_unused]] static CopyArgs by_output(const ConvShape& s, DType dtype, void* to,
                                           const void* from, bool back) {
  const std::int64_t in = s.in / s.groups, places = s.kernel[0] * s.kernel[1];
  const std::int64_t size[3] = {s.out, places, in}, plain[3] = {in * places, 1, places},
                     arranged[3] = {in * places, in, 1};
  return rearrange(dtype, to, from, 3, size, back ? plain : arranged, back ? arranged : plain);
}
/// Copies weights [groups, out / groups, in / groups, kernel] to [groups, kernel, out / groups, in
/// / groups].
[[maybe_unused]] static CopyArgs by_input(const ConvShape& s, DType dtype, void* to,
                                          const void* from) {
  const std::int64_t in = s.in / s.groups, out = s.out / s.groups,
                     places = s.kernel[0] * s.kernel[1];
  const std::int64_t size[4] = {s.groups, places, out, in},
                     arranged[4] = {out * in * places, out * in, in, 1},
                     plain[4] = {out * in * places, 1, in * places, places};
  return rearrange(dtype, to, from, 4, size, arranged, plain);
}

/// Copies a bias to all pixels.
[[maybe_unused]] static CopyArgs spread(DType dtype, void* images, const void* bias,
                                        std::int64_t pixels, std::int64_t channels) {
  const std::int64_t size[2] = {pixels, channels}, to[2] = {channels, 1}, from[2] = {0, 1};
  return rearrange(dtype, images, bias, 2, size, to, from);
}

/// Calls f(first image, number of images, their columns, stride of a row of columns, stride of a
/// group) for each chunk.
template <class Engine, class F>
void for_chunks(Engine& e, const Unfold& u, std::int64_t n, void* memory, std::int64_t chunk, F f) {
  for (std::int64_t first = 0; first < n; first += chunk) {
    const std::int64_t images = n - first < chunk ? n - first : chunk;
    if (is_plain(u)) {
      f(first, images,
        static_cast<const char*>(u.images) + first * places_of(u) * u.channels * u.bytes,
        u.channels, u.channels / u.groups);
    } else {
      e.unfold(u, first, images, memory);
      f(first, images, static_cast<const char*>(memory), depth_of(u),
        images * places_of(u) * depth_of(u));
    }
  }
}

template <class Engine> std::int64_t chunk_of(const Unfold& u, std::int64_t n) {
  if (is_plain(u)) return n;
  const std::int64_t fit = Engine::kColumns / (places_of(u) * u.groups * depth_of(u) * u.bytes);
  return fit < 1 ? 1 : fit < n ? fit : n;
}

/// Bytes of memory for the weights, which come first, and for the columns.
[[maybe_unused]] static std::int64_t weight_bytes(const ConvShape& s, std::int64_t bytes) {
  return (s.out * (s.in / s.groups) * s.kernel[0] * s.kernel[1] * bytes + 63) / 64 * 64;
}
[[maybe_unused]] static std::int64_t column_bytes(const Unfold& u, std::int64_t chunk) {
  return is_plain(u) ? 0 : chunk * places_of(u) * u.groups * depth_of(u) * u.bytes;
}

}  // namespace conv_detail

template <class Engine> void conv_products(const ConvArgs& args, Engine& e) {
  using namespace conv_detail;
  const ConvShape& s = args.shape;
  const std::int64_t bytes = args.dtype == DType::float64 ? 8 : 4, out = s.out / s.groups;
  const Unfold u = unfold_input(s, args.x, bytes);
  const std::int64_t chunk = chunk_of<Engine>(u, s.n);
  e.with_memory(
      static_cast<std::size_t>(weight_bytes(s, bytes) + column_bytes(u, chunk)), [&](void* memory) {
        e.copy(by_output(s, args.dtype, memory, args.weight, false));
        if (args.bias != nullptr)
          e.copy(spread(args.dtype, args.y, args.bias, s.n * places_of(u), s.out));
        for_chunks(e, u, s.n, static_cast<char*>(memory) + weight_bytes(s, bytes), chunk,
                   [&](std::int64_t first, std::int64_t images, const char* columns,
                       std::int64_t row, std::int64_t group) {
                     GemmArgs g{};
                     g.dtype = args.dtype;
                     g.tb = true;
                     g.accumulate = args.bias != nullptr;
                     g.m = images * places_of(u), g.n = out, g.k = depth_of(u), g.batch = s.groups;
                     g.a = columns, g.lda = row, g.batch_a = group;
                     g.b = memory, g.ldb = depth_of(u), g.batch_b = out * depth_of(u);
                     g.c = static_cast<char*>(args.y) + first * places_of(u) * s.out * bytes,
                     g.ldc = s.out, g.batch_c = out;
                     e.gemm(g);
                   });
      });
}

template <class Engine> void conv_products(const ConvDataArgs& args, Engine& e) {
  using namespace conv_detail;
  const ConvShape& s = args.shape;
  const std::int64_t bytes = args.dtype == DType::float64 ? 8 : 4, in = s.in / s.groups;
  const Unfold u = unfold_output(s, args.dy, bytes);
  const std::int64_t chunk = chunk_of<Engine>(u, s.n);
  e.with_memory(
      static_cast<std::size_t>(weight_bytes(s, bytes) + column_bytes(u, chunk)), [&](void* memory) {
        e.copy(by_input(s, args.dtype, memory, args.weight));
        if (args.bias != nullptr)
          e.copy(spread(args.dtype, args.dx, args.bias, s.n * places_of(u), s.in));
        for_chunks(e, u, s.n, static_cast<char*>(memory) + weight_bytes(s, bytes), chunk,
                   [&](std::int64_t first, std::int64_t images, const char* columns,
                       std::int64_t row, std::int64_t group) {
                     GemmArgs g{};
                     g.dtype = args.dtype;
                     g.accumulate = args.bias != nullptr;
                     g.m = images * places_of(u), g.n = in, g.k = depth_of(u), g.batch = s.groups;
                     g.a = columns, g.lda = row, g.batch_a = group;
                     g.b = memory, g.ldb = in, g.batch_b = depth_of(u) * in;
                     g.c = static_cast<char*>(args.dx) + first * places_of(u) * s.in * bytes,
                     g.ldc = s.in, g.batch_c = in;
                     e.gemm(g);
                   });
      });
}

/// The chunks' products are accumulated sequentially.
template <class Engine> void conv_products(const ConvWeightArgs& args, Engine& e) {
  using namespace conv_detail;
  const ConvShape& s = args.shape;
  const std::int64_t bytes = args.dtype == DType::float64 ? 8 : 4, out = s.out / s.groups;
  const Unfold u = unfold_input(s, args.x, bytes);
  const std::int64_t chunk = chunk_of<Engine>(u, s.n);
  e.with_memory(
      static_cast<std::size_t>(weight_bytes(s, bytes) + column_bytes(u, chunk)), [&](void* memory) {
        for_chunks(e, u, s.n, static_cast<char*>(memory) + weight_bytes(s, bytes), chunk,
                   [&](std::int64_t first, std::int64_t images, const char* columns,
                       std::int64_t row, std::int64_t group) {
                     GemmArgs g{};
                     g.dtype = args.dtype;
                     g.ta = true;
                     g.accumulate = first > 0;
                     g.m = out, g.n = depth_of(u), g.k = images * places_of(u), g.batch = s.groups;
                     g.a = static_cast<const char*>(args.dy) + first * places_of(u) * s.out * bytes,
                     g.lda = s.out, g.batch_a = out;
                     g.b = columns, g.ldb = row, g.batch_b = group;
                     g.c = memory, g.ldc = depth_of(u), g.batch_c = out * depth_of(u);
                     e.gemm(g);
                   });
        e.copy(by_output(s, args.dtype, args.dw, memory, true));
      });
  if (args.db == nullptr) return;
  e.reduce(bias_sums(args));
}

}  // namespace braid
