// Convolutions. There are three recorded functions, whose derivatives are again these functions:
// forward, backward_data, backward_weight. The transposed convolution is backward_data. Sequences
// are images of height 1.
#include <braid/core/ops/conv.hpp>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/conv.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"
#include "images.hpp"

namespace braid {
namespace {

/// Returns the channels of all groups. On overflow returns the largest int64, which is the size of
/// no tensor.
std::int64_t all_channels(std::int64_t of_a_group, std::int64_t groups) {
  std::int64_t all = 0;
  const bool over = __builtin_mul_overflow(of_a_group, groups, &all);
  return over ? std::numeric_limits<std::int64_t>::max() : all;
}

// Options and sides of images are below this, so that sums of products of two of them fit in 64
// bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

/// The dtype in which a device's kernels compute: the CPU has none for float16 and bfloat16.
DType computed(const Tensor& t) {
  const bool widened = size_of(t.dtype()) == 2 && t.device().type() == DeviceType::cpu;
  return widened ? DType::float32 : t.dtype();
}

/// Returns t in the dtype and layout of the kernels: images are channels last. Not recorded.
Tensor images(const Tensor& t) {
  if (t.dtype() == computed(t) && ops::is_channels_last(*t.id())) return t;
  Tensor dense = ops::make_channels_last(t.shape(), computed(t), t.device());
  ops::copy_values(dense, t);
  return dense;
}
Tensor weights(const Tensor& t) {
  if (!t.defined() || (t.dtype() == computed(t) && t.is_contiguous())) return t;
  Tensor dense = make_tensor(t.shape(), computed(t), t.device());
  ops::copy_values(dense, t);
  return dense;
}
/// Converts a result to the caller's dtype.
Tensor rounded(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor narrow = ops::make_like(*t.id(), dtype);
  ops::copy_values(narrow, t);
  return narrow;
}

struct Conv {
  const char* op;
  ConvShape shape;

  [[nodiscard]] Shape input() const {
    return {shape.n, shape.in, shape.in_size[0], shape.in_size[1]};
  }
  [[nodiscard]] Shape output() const {
    return {shape.n, shape.out, shape.out_size[0], shape.out_size[1]};
  }
  [[nodiscard]] Shape weight() const {
    return {shape.out, shape.in / shape.groups, shape.kernel[0], shape.kernel[1]};
  }
};

Tensor forward(const Conv& c, const Tensor& x, const Tensor& weight, const Tensor& bias);
/// bias: of a transposed convolution, else undefined.
Tensor backward_data(const Conv& c, const Tensor& dy, const Tensor& weight, const Tensor& bias);
/// Returns {dw, db}. db is undefined without `bias`.
std::pair<Tensor, Tensor> backward_weight(const Conv& c, const Tensor& x, const Tensor& dy,
                                          bool bias);

Tensor forward(const Conv& c, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType dtype = computed(x);
  Tensor y = ops::make_channels_last(c.output(), dtype, x.device());
  if (y.numel() > 0) {
    const Tensor from = images(x), by = weights(weight), plus = weights(bias);
    launch(c.op, x.device(), &KernelTable::conv,
           ConvArgs{dtype, from.id()->data(), by.id()->data(),
                    plus.defined() ? plus.id()->data() : nullptr, y.id()->data(), c.shape});
  }
  y = rounded(y, x.dtype());
  if (!needs_grad({x, weight, bias})) return y;
  return record(c.op, {x, weight, bias}, y,
                [c, sx = ops::saved_for({weight}, x), sw = ops::saved_for({x}, weight)](
                    const Tensor& dy, Needs needs) -> Grads {
                  Tensor dx, dw, db;
                  if (needs[0]) dx = backward_data(c, dy, sw.get(), {});
                  if (needs[1]) std::tie(dw, db) = backward_weight(c, sx.get(), dy, needs[2]);
                  else if (needs[2]) db = sum(dy, {0, 2, 3});
                  return {std::move(dx), std::move(dw), std::move(db)};
                });
}

Tensor backward_data(const Conv& c, const Tensor& dy, const Tensor& weight, const Tensor& bias) {
  const DType dtype = computed(dy);
  Tensor dx = ops::make_channels_last(c.input(), dtype, dy.device());
  if (dx.numel() > 0) {
    const Tensor from = images(dy), by = weights(weight), plus = weights(bias);
    launch(c.op, dy.device(), &KernelTable::conv_backward_data,
           ConvDataArgs{dtype, from.id()->data(), by.id()->data(),
                        plus.defined() ? plus.id()->data() : nullptr, dx.id()->data(), c.shape});
  }
  dx = rounded(dx, dy.dtype());
  if (!needs_grad({dy, weight, bias})) return dx;
  return record(c.op, {dy, weight, bias}, dx,
                [c, sdy = ops::saved_for({weight}, dy), sw = ops::saved_for({dy}, weight)](
                    const Tensor& g, Needs needs) -> Grads {
                  return {needs[0] ? forward(c, g, sw.get(), {}) : Tensor(),
                          needs[1] ? backward_weight(c, g, sdy.get(), false).first : Tensor(),
                          needs[2] ? sum(g, {0, 2, 3}) : Tensor()};
                });
}

std::pair<Tensor, Tensor> backward_weight(const Conv& c, const Tensor& x, const Tensor& dy,
                                          bool bias) {
  const DType dtype = computed(x);
  Tensor dw, db;
  if (x.numel() == 0) {
    dw = ops::filled(c.weight(), 0, dtype, x.device());
    if (bias) db = ops::filled({c.shape.out}, 0, dtype, x.device());
  } else {
    dw = make_tensor(c.weight(), dtype, x.device());
    if (bias) db = make_tensor({c.shape.out}, dtype, x.device());
    const Tensor from = images(x), over = images(dy);
    launch(c.op, x.device(), &KernelTable::conv_backward_weight,
           ConvWeightArgs{dtype, from.id()->data(), over.id()->data(), dw.id()->data(),
                          bias ? db.id()->data() : nullptr, c.shape});
  }
  dw = rounded(dw, x.dtype());
  if (bias) db = rounded(db, x.dtype());
  if (!needs_grad({x, dy})) return {dw, db};
  const std::array<Tensor, 2> inputs{x, dy}, outputs{dw, db};
  record_many(c.op, inputs, std::span(outputs).first(bias ? 2 : 1), x.device(),
              [c, sx = ops::saved_for({dy}, x), sdy = ops::saved_for({x}, dy)](
                  std::span<const Tensor> g, Needs needs) -> Grads {
                const bool to_bias = g.size() > 1 && g[1].defined();
                Tensor dx, ddy;
                if (needs[0] && g[0].defined()) dx = backward_data(c, sdy.get(), g[0], {});
                if (needs[1] && g[0].defined())
                  ddy = forward(c, sx.get(), g[0], to_bias ? g[1] : Tensor());
                else if (needs[1] && to_bias) ddy = g[1].reshape({1, -1, 1, 1}).expand(c.output());
                return {std::move(dx), std::move(ddy)};
              });
  return {outputs[0], outputs[1]};
}

// ---- checks

/// The two values of an option, indexed by dim.
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

/// Checks devices, dtypes, and the shape of the bias, which is [out].
void check_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::int64_t out) {
  ops::check_floating(op, x);
  ops::check_device(op, x, weight);
  ops::check_dtype(op, x, weight);
  if (!bias.defined()) return;
  ops::check_device(op, x, bias);
  ops::check_dtype(op, x, bias);
  if (bias.shape() != Shape{out})
    throw ShapeError(
        str(op, ": expected bias [", out, "] for weight ", weight.shape(), ", got ", bias.shape()));
}
void check_ranks(const char* op, const Tensor& x, const Tensor& weight, int spatial) {
  const char* const sides = spatial == 2 ? "height, width]" : "length]";
  if (weight.dim() != spatial + 2)
    throw ShapeError(
        str(op, ": expected weight [channels, channels, ", sides, ", got ", weight.shape()));
  if (x.dim() != spatial + 2 && x.dim() != spatial + 1)
    throw ShapeError(str(op, ": expected x [n, channels, ", sides, " or [channels, ", sides,
                         ", got ", x.shape()));
  if (weight.numel() == 0)
    throw ShapeError(str(op, ": expected a weight with elements, got ", weight.shape()));
}
void check_groups(const char* op, const char* which, std::int64_t channels, std::int64_t groups) {
  if (groups < 1) throw ArgumentError(str(op, ": expected groups >= 1, got ", groups));
  if (channels % groups != 0)
    throw ShapeError(str(op, ": expected groups to divide the ", channels, " ", which,
                         " channels, got groups ", groups));
}
void check_side(const char* op, const Tensor& x, std::int64_t side) {
  if (side < 1 || side >= kLargest)
    throw ShapeError(
        str(op, ": expected sides ", side < 1 ? "above 0" : "below 2^31", ", got x ", x.shape()));
}

/// A call after conversion to images: x [n, c, h, w], weight of rank 4.
struct Call {
  const char* op;
  Tensor x, weight, bias;
};

Tensor conv_images(const Call& call, const Conv2dOptions& o) {
  const char* const op = call.op;
  const Shape &xs = call.x.shape(), &ws = call.weight.shape();
  check_groups(op, "output", ws[0], o.groups);
  if (xs[1] != all_channels(ws[1], o.groups))
    throw ShapeError(str(op, ": expected x with ", all_channels(ws[1], o.groups),
                         " channels for weight ", ws, " and groups ", o.groups, ", got ", xs[1]));
  check_option(op, "stride", o.stride, 1);
  check_option(op, "dilation", o.dilation, 1);
  check_option(op, "padding", o.padding.size, 0);
  const bool same = o.padding.same;
  if (same && o.stride != Size2(1))
    throw ArgumentError(str(op, ": expected stride 1 with padding \"same\", got ", o.stride.height,
                            ", ", o.stride.width));
  Conv c{op, {}};
  c.shape.n = xs[0], c.shape.in = xs[1], c.shape.out = ws[0], c.shape.groups = o.groups;
  const Both stride(o.stride), dilation(o.dilation), pad(o.padding.size);
  for (int d = 0; d < 2; ++d) {
    const std::int64_t in = xs[2 + d], kernel = ws[2 + d];
    check_side(op, call.x, in);
    check_side(op, call.weight, kernel);
    const std::int64_t reach = dilation.of[d] * (kernel - 1), before = same ? reach / 2 : pad.of[d],
                       both = same ? reach : 2 * before;
    if (reach >= in + both)
      throw ShapeError(str(
          op,
          ": expected a kernel no larger than the padded image, got a kernel that reaches over ",
          reach + 1, " of ", in + both));
    c.shape.in_size[d] = in;
    c.shape.kernel[d] = kernel;
    c.shape.stride[d] = stride.of[d];
    c.shape.pad[d] = before;
    c.shape.dilation[d] = dilation.of[d];
    c.shape.out_size[d] = (in + both - reach - 1) / stride.of[d] + 1;
  }
  return forward(c, call.x, call.weight, call.bias);
}

Tensor transposed_images(const Call& call, const ConvTranspose2dOptions& o) {
  const char* const op = call.op;
  const Shape &xs = call.x.shape(), &ws = call.weight.shape();
  check_groups(op, "input", ws[0], o.groups);
  if (xs[1] != ws[0])
    throw ShapeError(
        str(op, ": expected x with ", ws[0], " channels for weight ", ws, ", got ", xs[1]));
  check_option(op, "stride", o.stride, 1);
  check_option(op, "dilation", o.dilation, 1);
  check_option(op, "padding", o.padding, 0);
  check_option(op, "output_padding", o.output_padding, 0);
  Conv c{op, {}};
  c.shape.n = xs[0], c.shape.in = all_channels(ws[1], o.groups), c.shape.out = ws[0],
  c.shape.groups = o.groups;
  const Both stride(o.stride), dilation(o.dilation), pad(o.padding), extra(o.output_padding);
  for (int d = 0; d < 2; ++d) {
    const std::int64_t in = xs[2 + d], kernel = ws[2 + d];
    check_side(op, call.x, in);
    check_side(op, call.weight, kernel);
    if (extra.of[d] >= stride.of[d] && extra.of[d] >= dilation.of[d])
      throw ArgumentError(
          str(op, ": expected output_padding smaller than stride or dilation, got ", extra.of[d]));
    const std::int64_t out =
        (in - 1) * stride.of[d] - 2 * pad.of[d] + dilation.of[d] * (kernel - 1) + extra.of[d] + 1;
    if (out < 1 || out >= kLargest)
      throw ShapeError(str(op, ": expected a result with sides above 0, got ", out, " for x ", xs));
    c.shape.in_size[d] = out;
    c.shape.kernel[d] = kernel;
    c.shape.stride[d] = stride.of[d];
    c.shape.pad[d] = pad.of[d];
    c.shape.dilation[d] = dilation.of[d];
    c.shape.out_size[d] = in;
  }
  return backward_data(c, call.x, call.weight, call.bias);
}

/// Calls f with x as a batch of images, and removes the dims that this added from the result. A
/// sequence becomes an image of height 1, an input without batch dim a batch of one.
template <class F>
Tensor as_images(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 int spatial, F f) {
  check_ranks(op, x, weight, spatial);
  const bool alone = x.dim() == spatial + 1;
  Call call{op, alone ? x.unsqueeze(0) : x, weight, bias};
  if (spatial == 1) call.x = call.x.unsqueeze(2), call.weight = weight.unsqueeze(2);
  Tensor y = f(call);
  if (spatial == 1) y = y.squeeze(2);
  return ops::own_result(alone ? y.squeeze(0) : y);
}

}  // namespace

ConvPadding::ConvPadding(const char* word) {
  if (word == nullptr)
    throw ArgumentError("padding: expected \"same\" or \"valid\", got a null pointer");
  same = std::string_view(word) == "same";
  if (!same && std::string_view(word) != "valid")
    throw ArgumentError(str("padding: expected \"same\" or \"valid\", got \"", word, "\""));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return conv2d(low(x), low(weight), low(bias), options);
  }
  check_operands("conv2d", x, weight, bias, weight.dim() > 0 ? weight.shape()[0] : 0);
  return as_images("conv2d", x, weight, bias, 2,
                   [&](const Call& call) { return conv_images(call, options); });
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return conv1d(low(x), low(weight), low(bias), options);
  }
  check_operands("conv1d", x, weight, bias, weight.dim() > 0 ? weight.shape()[0] : 0);
  Conv2dOptions o{.stride = {1, options.stride},
                  .padding = options.padding,
                  .dilation = {1, options.dilation},
                  .groups = options.groups};
  o.padding.size.height = 0;
  return as_images("conv1d", x, weight, bias, 1,
                   [&](const Call& call) { return conv_images(call, o); });
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return conv_transpose2d(low(x), low(weight), low(bias), options);
  }
  check_operands("conv_transpose2d", x, weight, bias,
                 weight.dim() > 1 ? all_channels(weight.shape()[1], options.groups) : 0);
  return as_images("conv_transpose2d", x, weight, bias, 2,
                   [&](const Call& call) { return transposed_images(call, options); });
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return conv_transpose1d(low(x), low(weight), low(bias), options);
  }
  check_operands("conv_transpose1d", x, weight, bias,
                 weight.dim() > 1 ? all_channels(weight.shape()[1], options.groups) : 0);
  const ConvTranspose2dOptions o{.stride = {1, options.stride},
                                 .padding = {0, options.padding},
                                 .output_padding = {0, options.output_padding},
                                 .groups = options.groups,
                                 .dilation = {1, options.dilation}};
  return as_images("conv_transpose1d", x, weight, bias, 1,
                   [&](const Call& call) { return transposed_images(call, o); });
}

}  // namespace braid
