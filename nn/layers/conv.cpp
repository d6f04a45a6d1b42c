#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/conv.hpp>

#include "layers/call.hpp"
#include "sizes.hpp"

namespace braid::nn {
namespace {

void check(const char* layer, std::int64_t in, std::int64_t out, Size2 kernel,
           std::int64_t groups) {
  if (in < 1) throw ArgumentError(str(layer, ": expected in_channels >= 1, got ", in));
  if (out < 1) throw ArgumentError(str(layer, ": expected out_channels >= 1, got ", out));
  for (const std::int64_t k : {kernel.height, kernel.width})
    if (k < 1) throw ArgumentError(str(layer, ": expected kernel_size >= 1, got ", k));
  if (groups < 1) throw ArgumentError(str(layer, ": expected groups >= 1, got ", groups));
  if (in % groups != 0)
    throw ArgumentError(
        str(layer, ": expected groups to divide in_channels ", in, ", got ", groups));
  if (out % groups != 0)
    throw ArgumentError(
        str(layer, ": expected groups to divide out_channels ", out, ", got ", groups));
}

/// Initialises weight and bias uniformly in [-1/√f, 1/√f), which is PyTorch's kaiming_uniform with
/// a = √5. f is the number of weight elements for each index of dim 0.
template <class Options>
void start(const char* layer, Parameter& weight, Parameter& bias, const Shape& shape,
           std::int64_t out, const Options& o) {
  (void)checked_numel(layer, shape, 8);  // bytes of the widest dtype
  const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / shape[0]));
  const FactoryOptions made{.device = o.device, .dtype = o.dtype};
  weight = Parameter(uniform(shape, -bound, bound, made));
  if (o.bias) bias = Parameter(uniform({out}, -bound, bound, made));
}

std::string padding_of(const ConvPadding& p, bool image) {
  return p.same ? "same" : image ? tuple(p.size) : tuple(p.size.width);
}

/// Formats `1, 32, kernel_size=(3, 3), stride=(1, 1)`, followed by the options that differ from
/// their defaults.
template <class S>
std::string described(std::int64_t in, std::int64_t out, S kernel, S stride,
                      const std::string& padding, S output_padding, S dilation, std::int64_t groups,
                      bool bias) {
  std::string text =
      str(in, ", ", out, ", kernel_size=", tuple(kernel), ", stride=", tuple(stride));
  if (padding != tuple(S(0))) text += ", padding=" + padding;
  if (dilation != S(1)) text += ", dilation=" + tuple(dilation);
  if (output_padding != S(0)) text += ", output_padding=" + tuple(output_padding);
  if (groups != 1) text += str(", groups=", groups);
  if (!bias) text += ", bias=false";
  return text;
}

}  // namespace

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2 kernel, const Conv2dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  check("Conv2d", in, out, kernel, o.groups);
  start("Conv2d", weight, bias, {out, in / o.groups, kernel.height, kernel.width}, out, o);
}
Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }
BRAID_LAYER_CALL(Tensor, Conv2d, (const Tensor& x), (x))
std::string Conv2d::extra() const {
  if (!weight.defined()) return "moved from";
  return described(weight.size(1) * options.groups, weight.size(0),
                   Size2(weight.size(2), weight.size(3)), options.stride,
                   padding_of(options.padding, true), Size2(0), options.dilation, options.groups,
                   bias.defined());
}

Conv1d::Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv1dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  check("Conv1d", in, out, kernel, o.groups);
  start("Conv1d", weight, bias, {out, in / o.groups, kernel}, out, o);
}
Tensor Conv1d::forward(const Tensor& x) const { return conv1d(x, weight, bias, options); }
BRAID_LAYER_CALL(Tensor, Conv1d, (const Tensor& x), (x))
std::string Conv1d::extra() const {
  if (!weight.defined()) return "moved from";
  return described(weight.size(1) * options.groups, weight.size(0), weight.size(2), options.stride,
                   padding_of(options.padding, false), std::int64_t{0}, options.dilation,
                   options.groups, bias.defined());
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in, std::int64_t out, Size2 kernel,
                                 const ConvTranspose2dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  check("ConvTranspose2d", in, out, kernel, o.groups);
  start("ConvTranspose2d", weight, bias, {in, out / o.groups, kernel.height, kernel.width}, out, o);
}
Tensor ConvTranspose2d::forward(const Tensor& x) const {
  return conv_transpose2d(x, weight, bias, options);
}
BRAID_LAYER_CALL(Tensor, ConvTranspose2d, (const Tensor& x), (x))
std::string ConvTranspose2d::extra() const {
  if (!weight.defined()) return "moved from";
  return described(weight.size(0), weight.size(1) * options.groups,
                   Size2(weight.size(2), weight.size(3)), options.stride, tuple(options.padding),
                   options.output_padding, options.dilation, options.groups, bias.defined());
}

ConvTranspose1d::ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                 const ConvTranspose1dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  check("ConvTranspose1d", in, out, kernel, o.groups);
  start("ConvTranspose1d", weight, bias, {in, out / o.groups, kernel}, out, o);
}
Tensor ConvTranspose1d::forward(const Tensor& x) const {
  return conv_transpose1d(x, weight, bias, options);
}
BRAID_LAYER_CALL(Tensor, ConvTranspose1d, (const Tensor& x), (x))
std::string ConvTranspose1d::extra() const {
  if (!weight.defined()) return "moved from";
  return described(weight.size(0), weight.size(1) * options.groups, weight.size(2), options.stride,
                   tuple(options.padding), options.output_padding, options.dilation, options.groups,
                   bias.defined());
}

BRAID_FIELDS_DEFINED(Conv2d, weight, bias)
BRAID_FIELDS_DEFINED(Conv1d, weight, bias)
BRAID_FIELDS_DEFINED(ConvTranspose2d, weight, bias)
BRAID_FIELDS_DEFINED(ConvTranspose1d, weight, bias)

}  // namespace braid::nn
