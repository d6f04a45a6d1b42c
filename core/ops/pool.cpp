// Pooling and resizing. Three kernels do max pooling. One computes weighted means and their
// transposes (average pooling, resizing and the gradients of both).
#include <braid/core/ops/pool.hpp>

#include <cmath>

#include <braid/core/internal/kernel_args/image.hpp>

#include "common.hpp"
#include "images.hpp"

namespace braid {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 31;

/// The two spatial axes, and the sizes of the images.
struct Pool {
  const char* op;
  std::int64_t n, c;
  Axis axis[2];
  bool last = false;  // x is channels last

  [[nodiscard]] Shape input() const { return {n, c, axis[0].in, axis[1].in}; }
  [[nodiscard]] Shape output() const { return {n, c, axis[0].out, axis[1].out}; }
};

ImageStrides strides_of(const Tensor& t) {
  const Shape& s = t.strides();
  return {{s[0], s[1], s[2], s[3]}};
}

/// Returns t in one of the two layouts for which the kernels are fast. Not recorded.
Tensor images(const Tensor& t) {
  if (t.is_contiguous() || ops::is_channels_last(*t.id())) return t;
  Tensor dense = make_tensor(t.shape(), t.dtype(), t.device());
  ops::copy_values(dense, t);
  return dense;
}
Tensor result(const Shape& shape, bool channels_last, DType dtype, Device device) {
  return channels_last ? ops::make_channels_last(shape, dtype, device)
                       : make_tensor(shape, dtype, device);
}
[[nodiscard]] bool is_last(const Tensor& t) {
  return !t.is_contiguous() && ops::is_channels_last(*t.id());
}

/// Returns t with the strides of an index.
Tensor beside(const Tensor& t, const Tensor& index) {
  bool same = true;
  for (int d = 0; d < 4; ++d)
    same = same && (t.shape()[d] == 1 || t.strides()[d] == index.strides()[d]);
  if (same) return t;
  const Tensor dense = make_tensor(t.shape(), t.dtype(), t.device());
  Tensor copy = make_tensor_on(dense.storage(), t.shape(), index.strides(), 0, t.dtype());
  ops::copy_values(copy, t);
  return copy;
}

// ---- max

Tensor max_backward(const Pool& p, const Tensor& dy, const Tensor& index);

/// Returns the elements of x at the index, which comes from max pooling of another image. It is the
/// gradient of max_backward.
Tensor max_pick(const Pool& p, const Tensor& x, const Tensor& index) {
  Tensor y = make_tensor_on(make_tensor(p.output(), x.dtype(), x.device()).storage(), p.output(),
                            index.strides(), 0, x.dtype());
  if (y.numel() > 0)
    launch(p.op, x.device(), &KernelTable::max_pool_pick,
           MaxPoolPickArgs{x.dtype(),
                           x.id()->data(),
                           static_cast<const std::int32_t*>(index.id()->data()),
                           y.id()->data(),
                           p.n,
                           p.c,
                           {p.axis[0], p.axis[1]},
                           strides_of(x),
                           strides_of(index)});
  if (!needs_grad({x})) return y;
  return record(p.op, {x}, y, [p, index = SavedTensor(index)](const Tensor& dy) -> Grads {
    return {max_backward(p, dy, index.get())};
  });
}

Tensor max_backward(const Pool& p, const Tensor& dy, const Tensor& index) {
  const Tensor g = beside(dy, index);
  Tensor dx = result(p.input(), p.last, dy.dtype(), dy.device());
  if (dx.numel() > 0)
    launch(p.op, dy.device(), &KernelTable::max_pool_backward,
           MaxPoolBackwardArgs{dy.dtype(),
                               g.id()->data(),
                               static_cast<const std::int32_t*>(index.id()->data()),
                               dx.id()->data(),
                               p.n,
                               p.c,
                               {p.axis[0], p.axis[1]},
                               strides_of(dx),
                               strides_of(index)});
  if (!needs_grad({dy})) return dx;
  return record(p.op, {dy}, dx, [p, index = SavedTensor(index)](const Tensor& g2) -> Grads {
    return {max_pick(p, g2, index.get())};
  });
}

/// Returns {y, int32 index}.
std::pair<Tensor, Tensor> max_forward(Pool p, const Tensor& a) {
  const Tensor x = images(a);
  p.last = is_last(x);
  Tensor y = result(p.output(), p.last, x.dtype(), x.device()),
         index = result(p.output(), p.last, DType::int32, x.device());
  if (y.numel() > 0)
    launch(p.op, x.device(), &KernelTable::max_pool,
           MaxPoolArgs{x.dtype(),
                       x.id()->data(),
                       y.id()->data(),
                       static_cast<std::int32_t*>(index.id()->data()),
                       p.n,
                       p.c,
                       {p.axis[0], p.axis[1]},
                       strides_of(x),
                       strides_of(y)});
  if (!needs_grad({a})) return {y, index};
  return {record(p.op, {a}, y,
                 [p, index = SavedTensor(index)](const Tensor& dy) -> Grads {
                   return {max_backward(p, dy, index.get())};
                 }),
          index};
}

// ---- weighted means

/// Computes weighted means of a or, with `transposed`, their gradient. Each is the gradient of the
/// other.
Tensor resampled(const Pool& p, const Tensor& a, bool transposed) {
  const Tensor x = images(a);
  Tensor y = result(transposed ? p.input() : p.output(), is_last(x), x.dtype(), x.device());
  if (y.numel() > 0)
    launch(p.op, x.device(), &KernelTable::resample,
           ResampleArgs{x.dtype(),
                        transposed,
                        x.id()->data(),
                        y.id()->data(),
                        p.n,
                        p.c,
                        {p.axis[0], p.axis[1]},
                        strides_of(x),
                        strides_of(y)});
  if (!needs_grad({a})) return y;
  return record(p.op, {a}, y, [p, transposed](const Tensor& dy) -> Grads {
    return {resampled(p, dy, !transposed)};
  });
}

// ---- checks

struct Both {
  std::int64_t of[2];
  explicit Both(Size2 s) : of{s.height, s.width} {}
};

void check_option(const char* op, const char* name, Size2 got, std::int64_t least) {
  for (const std::int64_t v : {got.height, got.width})
    if (v < least || v >= kLargest)
      throw ArgumentError(str(op, ": expected ", name,
                              v >= kLargest ? " below 2^31"
                              : least == 0  ? " >= 0"
                                            : " >= 1",
                              ", got ", v));
}

void check_images(const char* op, const Tensor& x, int spatial) {
  ops::check_floating(op, x);
  const char* const sides = spatial == 2 ? "height, width]" : "length]";
  if (x.dim() != spatial + 2 && x.dim() != spatial + 1)
    throw ShapeError(str(op, ": expected x [n, channels, ", sides, " or [channels, ", sides,
                         ", got ", x.shape()));
  std::int64_t places = 1;
  for (int d = x.dim() - spatial; d < x.dim(); ++d) {
    const std::int64_t side = x.shape()[d];
    if (side < 1) throw ShapeError(str(op, ": expected sides above 0, got x ", x.shape()));
    if (side >= kLargest / places)
      throw ShapeError(str(op, ": expected images of less than 2^31 elements, got x ", x.shape()));
    places *= side;
  }
}

/// Calls f with x as a batch of images, and removes the dims that this added from the result. A
/// sequence becomes an image of height 1, an input without batch dim a batch of one.
template <class F> Tensor as_images(const Tensor& x, int spatial, F f) {
  const bool alone = x.dim() == spatial + 1;
  Tensor images = alone ? x.unsqueeze(0) : x;
  if (spatial == 1) images = images.unsqueeze(2);
  Tensor y = f(images);
  if (spatial == 1) y = y.squeeze(2);
  return ops::own_result(alone ? y.squeeze(0) : y);
}
Tensor back(Tensor y, const Tensor& x, int spatial) {
  if (spatial == 1) y = y.squeeze(2);
  return ops::own_result(x.dim() == spatial + 1 ? y.squeeze(0) : y);
}

struct Window {
  Size2 kernel, stride, padding, dilation;
  bool ceil_mode;
  std::int64_t divisor = 0;
};

/// Returns the windows over the images x. In a sequence, the height has windows of size 1.
Pool windows(const char* op, const Tensor& x, const Window& w) {
  check_option(op, "kernel", w.kernel, 1);
  check_option(op, "stride", w.stride, 1);
  check_option(op, "padding", w.padding, 0);
  check_option(op, "dilation", w.dilation, 1);
  const Both kernel(w.kernel), stride(w.stride), pad(w.padding), dilation(w.dilation);
  Pool p{op, x.shape()[0], x.shape()[1], {}};
  for (int d = 0; d < 2; ++d) {
    if (2 * pad.of[d] > kernel.of[d])
      throw ArgumentError(str(op, ": expected padding of at most half the kernel ", kernel.of[d],
                              ", got ", pad.of[d]));
    Axis& a = p.axis[d];
    a.in = x.shape()[2 + d];
    a.kernel = kernel.of[d], a.stride = stride.of[d], a.pad = pad.of[d],
    a.dilation = dilation.of[d];
    a.divisor = w.divisor > 0 && d == 1 ? 1 : w.divisor;
    const std::int64_t reach = a.dilation * (a.kernel - 1) + 1, room = a.in + 2 * a.pad - reach;
    if (room < 0 && !(w.ceil_mode && room + a.stride > 0))
      throw ShapeError(
          str(op, ": expected a window no larger than the padded image, got one that reaches over ",
              reach, " of ", a.in + 2 * a.pad));
    a.out = (room + (w.ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
    // the last window must begin inside the image or the padding before it
    if (w.ceil_mode && (a.out - 1) * a.stride >= a.in + a.pad) --a.out;
    for (std::int64_t o = 0; o < a.out && o * a.stride < a.pad; ++o)
      if (seen_by(a, o).first >= a.in)
        throw ShapeError(str(op, ": expected windows that see an element each, got padding ", a.pad,
                             " and dilation ", a.dilation, " for x ", x.shape()));
    if (a.out < 1)
      throw ShapeError(str(op, ": expected a result with sides above 0, got x ", x.shape()));
  }
  return p;
}

Pool parts(const char* op, const Tensor& x, Size2 size) {
  check_option(op, "size", size, 1);
  const Both out(size);
  Pool p{op, x.shape()[0], x.shape()[1], {}};
  for (int d = 0; d < 2; ++d) {
    p.axis[d].kind = Axis::Kind::adaptive;
    p.axis[d].in = x.shape()[2 + d];
    p.axis[d].out = out.of[d];
  }
  return p;
}

Window window_of(Size2 kernel, const MaxPool2dOptions& o) {
  return {kernel, o.stride.value_or(kernel), o.padding, o.dilation, o.ceil_mode};
}
Window window_of(std::int64_t kernel, const MaxPool1dOptions& o) {
  return {
      {1, kernel}, {1, o.stride.value_or(kernel)}, {0, o.padding}, {1, o.dilation}, o.ceil_mode};
}

std::pair<Tensor, Tensor> max_pooled(const char* op, const Tensor& x, const Window& w,
                                     int spatial) {
  check_images(op, x, spatial);
  std::pair<Tensor, Tensor> both;
  both.first = as_images(x, spatial, [&](const Tensor& images) {
    auto made = max_forward(windows(op, images, w), images);
    both.second = std::move(made.second);
    return made.first;
  });
  return both;
}
std::pair<Tensor, Tensor> with_indices(const char* op, const Tensor& x, const Window& w,
                                       int spatial) {
  auto both = max_pooled(op, x, w, spatial);
  both.second = back(both.second.to(DType::int64), x, spatial);
  return both;
}

Tensor averaged(const char* op, const Tensor& x, Window w, bool count_include_pad,
                std::optional<std::int64_t> divisor, int spatial) {
  check_images(op, x, spatial);
  if (divisor && *divisor < 1)
    throw ArgumentError(str(op, ": expected divisor_override >= 1, got ", *divisor));
  w.divisor = divisor ? *divisor : count_include_pad ? -1 : 0;
  return as_images(x, spatial, [&](const Tensor& images) {
    return resampled(windows(op, images, w), images, false);
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options) {
  return max_pooled("max_pool2d", x, window_of(kernel, options), 2).first;
}
Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options) {
  return max_pooled("max_pool1d", x, window_of(kernel, options), 1).first;
}
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, Size2 kernel,
                                                  const MaxPool2dOptions& options) {
  return with_indices("max_pool2d_with_indices", x, window_of(kernel, options), 2);
}
std::pair<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x, std::int64_t kernel,
                                                  const MaxPool1dOptions& options) {
  return with_indices("max_pool1d_with_indices", x, window_of(kernel, options), 1);
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel, const AvgPool2dOptions& o) {
  return averaged("avg_pool2d", x, {kernel, o.stride.value_or(kernel), o.padding, 1, o.ceil_mode},
                  o.count_include_pad, o.divisor_override, 2);
}
Tensor avg_pool1d(const Tensor& x, std::int64_t kernel, const AvgPool1dOptions& o) {
  return averaged("avg_pool1d", x,
                  {{1, kernel}, {1, o.stride.value_or(kernel)}, {0, o.padding}, 1, o.ceil_mode},
                  o.count_include_pad, {}, 1);
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size) {
  check_images("adaptive_avg_pool2d", x, 2);
  return as_images(x, 2, [&](const Tensor& images) {
    return resampled(parts("adaptive_avg_pool2d", images, size), images, false);
  });
}
Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t size) {
  check_images("adaptive_avg_pool1d", x, 1);
  return as_images(x, 1, [&](const Tensor& images) {
    return resampled(parts("adaptive_avg_pool1d", images, {1, size}), images, false);
  });
}
Tensor adaptive_max_pool2d(const Tensor& x, Size2 size) {
  check_images("adaptive_max_pool2d", x, 2);
  return as_images(x, 2, [&](const Tensor& images) {
    return max_forward(parts("adaptive_max_pool2d", images, size), images).first;
  });
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  const char* const op = "interpolate";
  if (o.size.has_value() == o.scale_factor.has_value())
    throw ArgumentError("interpolate: expected size or scale_factor, got both or neither");
  const int spatial =
      o.mode == Interpolation::linear || (o.mode == Interpolation::nearest && x.dim() == 3) ? 1 : 2;
  check_images(op, x, spatial);
  if (x.dim() != spatial + 2)
    throw ShapeError(str(op, ": expected x ",
                         spatial == 1 ? "[n, channels, length]" : "[n, channels, height, width]",
                         " for this mode, got ", x.shape()));
  if (o.align_corners && o.mode == Interpolation::nearest)
    throw ArgumentError(
        "interpolate: expected align_corners with linear or bilinear alone, got nearest");
  if (o.size) check_option(op, "size", *o.size, 1);
  if (o.size && o.recompute_scale_factor)
    throw ArgumentError(
        "interpolate: expected recompute_scale_factor with scale_factor alone, got a size");
  const double factor[2] = {o.scale_factor ? o.scale_factor->height : 0,
                            o.scale_factor ? o.scale_factor->width : 0};
  const Both size(o.size.value_or(1));
  return as_images(x, spatial, [&](const Tensor& images) {
    Pool p{op, images.shape()[0], images.shape()[1], {}};
    for (int d = 0; d < 2; ++d) {
      if (spatial == 1 && d == 0) continue;  // the height of a sequence is 1 and stays 1
      Axis& a = p.axis[d];
      a.kind = o.mode == Interpolation::nearest ? Axis::Kind::nearest : Axis::Kind::linear;
      a.in = images.shape()[2 + d];
      a.out = size.of[d];
      double scale = 0;  // distance in the image for one step in the result
      if (o.scale_factor) {
        const double grown = static_cast<double>(a.in) * factor[d];
        if (!(factor[d] > 0))
          throw ArgumentError(str(op, ": expected scale_factor > 0, got ", factor[d]));
        if (!(grown < static_cast<double>(kLargest)))
          throw ArgumentError(str(op, ": expected a scale_factor that makes sides below 2^31, got ",
                                  factor[d], " for x ", x.shape()));
        if (grown < 1)
          throw ShapeError(str(op, ": expected a result with sides above 0, got scale_factor ",
                               factor[d], " for x ", x.shape()));
        a.out = static_cast<std::int64_t>(grown);
        if (!o.recompute_scale_factor) scale = 1 / factor[d];
      }
      if (a.kind == Axis::Kind::nearest) {
        a.scale = scale;
      } else if (o.align_corners) {
        a.scale = a.out > 1 ? static_cast<double>(a.in - 1) / static_cast<double>(a.out - 1) : 0;
      } else {
        const bool given = scale > 0 && a.out != a.in;  // one size is a copy, whatever the factor
        a.scale = given ? scale : static_cast<double>(a.in) / static_cast<double>(a.out);
        a.shift = 0.5 * a.scale - 0.5;
      }
    }
    return resampled(p, images, false);
  });
}

}  // namespace braid
