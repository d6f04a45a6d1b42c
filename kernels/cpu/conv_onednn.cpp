#include "cpu/conv_library.hpp"

#if defined(BRAID_WITH_ONEDNN)

#include <algorithm>
#include <memory>
#include <vector>

#include <braid/core/error.hpp>

#include "cpu/gemm_library.hpp"
#include "cpu/onednn.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/runtime/scratch.hpp"

// oneDNN gets the images as they are, channels last, which its kernels read and write without a
// reorder. Weights are reordered to the format that oneDNN prefers, once per call, and weight
// gradients are reordered back.
namespace braid::cpu {
namespace {

using Memory = dnnl::memory;
using onednn::engine, onednn::OneThread, onednn::Visit;

constexpr std::size_t kPrimitives = 64;               // kept per thread
constexpr std::int64_t kMostTiles = 8;                // of a batch
constexpr std::int64_t kTileWork = 512 * 1024;        // least multiply-adds of a tile
constexpr std::int64_t kGradients = 4 * 1024 * 1024;  // elements in all tiles' weight gradients

constinit thread_local bool t_closed = false;  // this thread's primitives were destroyed

enum class Kind : unsigned { forward, data, weight };

struct Key {
  Kind kind;
  bool bias;
  ConvShape shape;  // of one tile
  bool operator==(const Key&) const = default;
};

[[noreturn]] void refuse(int status) {
  throw InternalError(str("conv: expected oneDNN to succeed, got status ", status));
}

Memory::dims weight_dims(const ConvShape& s) {
  const std::int64_t out = s.out / s.groups, in = s.in / s.groups;
  if (s.groups == 1) return {out, in, s.kernel[0], s.kernel[1]};
  return {s.groups, out, in, s.kernel[0], s.kernel[1]};
}

/// A primitive with its memory objects; images, weights and bias get their addresses at each call.
struct Convolution {
  Key key;
  dnnl::primitive primitive;
  dnnl::reorder reorder;  // weights: from the plain format; gradients: to it
  Memory src, weights, plain, bias, dst;
  bool reorders = false;

  explicit Convolution(const Key& k) : key(k) {
    const ConvShape& s = k.shape;
    using Format = Memory::format_tag;
    const auto f32 = Memory::data_type::f32;
    const Memory::desc x({s.n, s.in, s.in_size[0], s.in_size[1]}, f32, Format::nhwc),
        y({s.n, s.out, s.out_size[0], s.out_size[1]}, f32, Format::nhwc);
    const Memory::dims weight_sizes = weight_dims(s);
    const Memory::desc user(weight_sizes, f32, s.groups == 1 ? Format::oihw : Format::goihw),
        any(weight_sizes, f32, Format::any);
    const Memory::desc b = k.bias ? Memory::desc({s.out}, f32, Format::x) : Memory::desc();
    Memory::dims stride, dilation, before, after;
    for (int d = 0; d < 2; ++d) {
      stride.push_back(s.stride[d]);
      dilation.push_back(s.dilation[d] - 1);
      before.push_back(s.pad[d]);
      after.push_back((s.out_size[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) + 1 -
                      s.in_size[d] - s.pad[d]);
    }
    const auto direct = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const auto forward = [&](const Memory::desc& with) {
      return dnnl::convolution_forward::primitive_desc(engine(), dnnl::prop_kind::forward_training,
                                                       direct, x, any, with, y, stride, dilation,
                                                       before, after);
    };
    const auto data = [&](const auto& hint) {
      return dnnl::convolution_backward_data::primitive_desc(engine(), direct, x, any, y, stride,
                                                             dilation, before, after, hint);
    };
    const auto weight = [&](const auto& hint) {
      return dnnl::convolution_backward_weights::primitive_desc(
          engine(), direct, x, any, b, y, stride, dilation, before, after, hint);
    };
#else
    const auto forward = [&](const Memory::desc& with) {
      return dnnl::convolution_forward::primitive_desc(
          {dnnl::prop_kind::forward_training, direct, x, any, with, y, stride, dilation, before,
           after},
          engine());
    };
    const auto data = [&](const auto& hint) {
      return dnnl::convolution_backward_data::primitive_desc(
          {direct, x, any, y, stride, dilation, before, after}, engine(), hint);
    };
    const auto weight = [&](const auto& hint) {
      return dnnl::convolution_backward_weights::primitive_desc(
          {direct, x, any, b, y, stride, dilation, before, after}, engine(), hint);
    };
#endif
    Memory::desc liked;
    if (k.kind == Kind::forward) {
      const auto made = forward(b);
      primitive = dnnl::convolution_forward(made);
      liked = made.weights_desc();
    } else if (k.kind == Kind::data) {
      const auto made = data(forward(Memory::desc()));
      primitive = dnnl::convolution_backward_data(made);
      liked = made.weights_desc();
    } else {
      const auto made = weight(forward(b));
      primitive = dnnl::convolution_backward_weights(made);
      liked = made.diff_weights_desc();
    }
    src = Memory(x, engine(), nullptr);
    dst = Memory(y, engine(), nullptr);
    plain = Memory(user, engine(), nullptr);
    if (k.bias) bias = Memory(b, engine(), nullptr);
    reorders = liked != user;
    // for gradients, each thread has a buffer; other weights are prepared once per call
    if (reorders && k.kind == Kind::weight) weights = Memory(liked, engine());
    else weights = Memory(liked, engine(), nullptr);
    if (reorders)
      reorder =
          k.kind == Kind::weight ? dnnl::reorder(weights, plain) : dnnl::reorder(plain, weights);
  }
};

// A thread's primitives; a new one replaces the oldest.
struct Primitives {
  dnnl::stream stream{engine()};
  // not in the object: a library that is opened late has little room for thread-local memory
  std::vector<std::unique_ptr<Convolution>> kept =
      std::vector<std::unique_ptr<Convolution>>(kPrimitives);
  std::size_t used = 0, next = 0;
  ~Primitives() { t_closed = true; }

  Convolution& find(const Key& key) {
    for (std::size_t i = 0; i < used; ++i)
      if (kept[i]->key == key) return *kept[i];
    auto made = std::make_unique<Convolution>(key);
    Convolution& found = *made;
    kept[next] = std::move(made);
    next = (next + 1) % kPrimitives;
    used = used < kPrimitives ? used + 1 : used;
    return found;
  }

  // The C function, because the C++ one takes a hash map.
  void execute(const dnnl::primitive& primitive, std::initializer_list<dnnl_exec_arg_t> arguments) {
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.begin());
    if (status != dnnl_success) refuse(status);
  }
};
Primitives& primitives() {
  thread_local Primitives of_thread;
  return of_thread;
}

void point(Memory& memory, const void* data) { memory.set_data_handle(const_cast<void*>(data)); }

/// The batch split into tiles of `each` images; the last tile may have fewer.
struct Tiles {
  std::int64_t each, count;
  Tiles(const ConvShape& s, std::int64_t most) {
    const double work = static_cast<double>(s.n) * static_cast<double>(s.out) *
                        static_cast<double>(s.in / s.groups) *
                        static_cast<double>(s.out_size[0] * s.out_size[1]) *
                        static_cast<double>(s.kernel[0] * s.kernel[1]);
    const double worth = work / static_cast<double>(kTileWork);
    if (worth < static_cast<double>(most)) most = static_cast<std::int64_t>(worth);
    most = most < 1 ? 1 : most > s.n ? s.n : most;
    each = (s.n + most - 1) / most;
    count = (s.n + each - 1) / each;
  }
  [[nodiscard]] ConvShape shape(ConvShape s, std::int64_t tile) const {
    s.n = s.n - tile * each < each ? s.n - tile * each : each;
    return s;
  }
};

const float* image(const void* p, std::int64_t channels, const std::int64_t (&size)[2],
                   std::int64_t number) {
  return static_cast<const float*>(p) + number * channels * size[0] * size[1];
}

/// Weights in the formats that the primitives of full tiles and of the last tile expect. The caller
/// reorders them once, for all threads.
struct Prepared {
  const void* whole;
  const void* rest;
  [[nodiscard]] const void* of(std::int64_t tile, const Tiles& tiles) const {
    return tile + 1 == tiles.count ? rest : whole;
  }
};
Prepared prepare(Kind kind, bool bias, const ConvShape& shape, const Tiles& tiles,
                 const void* weight) {
  const ConvShape shapes[2] = {tiles.shape(shape, 0), tiles.shape(shape, tiles.count - 1)};
  const int kinds = shapes[0] == shapes[1] ? 1 : 2;
  std::size_t bytes[2] = {0, 0};
  for (int i = 0; i < kinds; ++i) {
    const Convolution& c = primitives().find({kind, bias, shapes[i]});
    if (c.reorders) bytes[i] = (c.weights.get_desc().get_size() + 63) / 64 * 64;
  }
  const void* made[2] = {weight, weight};
  char* to =
      bytes[0] + bytes[1] == 0 ? nullptr : static_cast<char*>(outer_scratch(bytes[0] + bytes[1]));
  for (int i = 0; i < kinds; ++i) {
    Convolution& c = primitives().find({kind, bias, shapes[i]});
    if (!c.reorders) continue;
    point(c.plain, weight);
    point(c.weights, to);
    primitives().execute(c.reorder,
                         {{DNNL_ARG_FROM, c.plain.get()}, {DNNL_ARG_TO, c.weights.get()}});
    made[i] = to;
    to += bytes[i];
  }
  return {made[0], kinds == 1 ? made[0] : made[1]};
}

void run(const ConvArgs& args, Stream& stream) {
  const Tiles tiles(args.shape, kMostTiles);
  const bool bias = args.bias != nullptr;
  const Prepared weights = prepare(Kind::forward, bias, args.shape, tiles, args.weight);
  const auto tile = [&](std::int64_t t) {
    const OneThread one_thread;
    Convolution& c = primitives().find({Kind::forward, bias, tiles.shape(args.shape, t)});
    point(c.src, image(args.x, args.shape.in, args.shape.in_size, t * tiles.each));
    point(c.dst, image(args.y, args.shape.out, args.shape.out_size, t * tiles.each));
    point(c.weights, weights.of(t, tiles));
    if (bias) point(c.bias, args.bias);
    const dnnl_exec_arg_t from{DNNL_ARG_SRC, c.src.get()}, by{DNNL_ARG_WEIGHTS, c.weights.get()},
        to{DNNL_ARG_DST, c.dst.get()};
    if (bias) primitives().execute(c.primitive, {from, by, to, {DNNL_ARG_BIAS, c.bias.get()}});
    else primitives().execute(c.primitive, {from, by, to});
  };
  parallel_for(stream, tiles.count, tile);
}

/// Adds the bias to the images [first, first + n) of dx. oneDNN's primitive has none.
void add_bias(const ConvDataArgs& args, std::int64_t first, std::int64_t n) {
  const ConvShape& s = args.shape;
  const std::int64_t pixels = s.in_size[0] * s.in_size[1];
  const float* const bias = static_cast<const float*>(args.bias);
  float* dx = static_cast<float*>(args.dx) + first * pixels * s.in;
  for (std::int64_t i = 0; i < n * pixels; ++i, dx += s.in)
    for (std::int64_t channel = 0; channel < s.in; ++channel) dx[channel] += bias[channel];
}

void run(const ConvDataArgs& args, Stream& stream) {
  const Tiles tiles(args.shape, kMostTiles);
  const Prepared weights = prepare(Kind::data, false, args.shape, tiles, args.weight);
  const auto tile = [&](std::int64_t t) {
    const OneThread one_thread;
    Convolution& c = primitives().find({Kind::data, false, tiles.shape(args.shape, t)});
    point(c.src, image(args.dx, args.shape.in, args.shape.in_size, t * tiles.each));
    point(c.dst, image(args.dy, args.shape.out, args.shape.out_size, t * tiles.each));
    point(c.weights, weights.of(t, tiles));
    primitives().execute(c.primitive, {{DNNL_ARG_DIFF_SRC, c.src.get()},
                                       {DNNL_ARG_WEIGHTS, c.weights.get()},
                                       {DNNL_ARG_DIFF_DST, c.dst.get()}});
    if (args.bias != nullptr) add_bias(args, t * tiles.each, c.key.shape.n);
  };
  parallel_for(stream, tiles.count, tile);
}

void run(const ConvWeightArgs& args, Stream& stream) {
  const ConvShape& s = args.shape;
  const std::int64_t size = s.out * (s.in / s.groups) * s.kernel[0] * s.kernel[1],
                     slot = (size + s.out + 15) / 16 * 16;
  const std::int64_t fit = kGradients / size;
  const Tiles tiles(s, fit < 2 ? 2 : fit < kMostTiles ? fit : kMostTiles);
  const bool bias = args.db != nullptr;
  float* const parts = static_cast<float*>(
      outer_scratch(static_cast<std::size_t>(tiles.count * slot) * sizeof(float)));
  const auto tile = [&](std::int64_t t) {
    const OneThread one_thread;
    Convolution& c = primitives().find({Kind::weight, bias, tiles.shape(s, t)});
    float* const part = parts + t * slot;
    point(c.src, image(args.x, s.in, s.in_size, t * tiles.each));
    point(c.dst, image(args.dy, s.out, s.out_size, t * tiles.each));
    point(c.plain, part);
    if (!c.reorders) point(c.weights, part);
    if (bias) point(c.bias, part + size);
    const dnnl_exec_arg_t from{DNNL_ARG_SRC, c.src.get()}, over{DNNL_ARG_DIFF_DST, c.dst.get()},
        to{DNNL_ARG_DIFF_WEIGHTS, c.weights.get()};
    if (bias)
      primitives().execute(c.primitive, {from, over, to, {DNNL_ARG_DIFF_BIAS, c.bias.get()}});
    else primitives().execute(c.primitive, {from, over, to});
    if (c.reorders)
      primitives().execute(c.reorder,
                           {{DNNL_ARG_FROM, c.weights.get()}, {DNNL_ARG_TO, c.plain.get()}});
  };
  parallel_for(stream, tiles.count, tile);
  // Sums the tiles as a binary tree.
  const std::int64_t all = bias ? size + s.out : size;
  for (std::int64_t step = 1; step < tiles.count; step *= 2)
    for (std::int64_t t = 0; t + step < tiles.count; t += 2 * step) {
      float* const to = parts + t * slot;
      const float* const from = parts + (t + step) * slot;
      for (std::int64_t i = 0; i < all; ++i) to[i] += from[i];
    }
  std::memcpy(args.dw, parts, static_cast<std::size_t>(size) * sizeof(float));
  if (bias) std::memcpy(args.db, parts + size, static_cast<std::size_t>(s.out) * sizeof(float));
}

/// Returns true if the padding is at most max(dilation (kernel - 1), 64) in both dims. The code
/// that the library generates grows with the padding beyond the kernel: 512 MB for a padding of
/// 65,536.
bool is_usual(const ConvShape& s) {
  for (int d = 0; d < 2; ++d)
    if (s.pad[d] > std::max<std::int64_t>(s.dilation[d] * (s.kernel[d] - 1), 64)) return false;
  return true;
}

template <class Args> bool library(const Args& args, Stream& stream, Kind kind) {
  if (args.dtype != DType::float32 || !library_gemm_available() || t_closed) return false;
  if (!is_usual(args.shape)) return false;
  Visit visit;
  if (!visit.open()) return false;
  const OneThread one_thread;
  try {
    run(args, stream);
  } catch (const dnnl::error& error) {
    // the library does not support images that reach further than the kernel
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) return false;
    throw InternalError(str("conv: expected oneDNN to succeed, got: ", error.what()));
  }
  visit.saw(16 + static_cast<unsigned>(kind));
  return true;
}

}  // namespace

bool library_conv(const ConvArgs& args, Stream& stream) {
  return library(args, stream, Kind::forward);
}
bool library_conv(const ConvDataArgs& args, Stream& stream) {
  return library(args, stream, Kind::data);
}
bool library_conv(const ConvWeightArgs& args, Stream& stream) {
  return library(args, stream, Kind::weight);
}

}  // namespace braid::cpu

#else  // without oneDNN

namespace braid::cpu {

bool library_conv(const ConvArgs&, Stream&) { return false; }
bool library_conv(const ConvDataArgs&, Stream&) { return false; }
bool library_conv(const ConvWeightArgs&, Stream&) { return false; }

}  // namespace braid::cpu

#endif
