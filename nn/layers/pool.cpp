#include <cmath>

#include <braid/core/error.hpp>
#include <braid/nn/functional.hpp>
#include <braid/nn/pool.hpp>

#include "layers/call.hpp"
#include "sizes.hpp"

namespace braid::nn {
namespace {

const char* word(bool b) { return b ? "true" : "false"; }

/// Formats a number as Python formats a float.
std::string decimal(double v) { return v == std::floor(v) ? str(v, ".0") : str(v); }

std::string name_of(Interpolation mode) {
  switch (mode) {
    case Interpolation::nearest: return "'nearest'";
    case Interpolation::linear: return "'linear'";
    default: return "'bilinear'";
  }
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 kernel, const MaxPool2dOptions& o) : kernel_size(kernel), options(o) {}
Tensor MaxPool2d::forward(const Tensor& x) const { return max_pool2d(x, kernel_size, options); }
BRAID_LAYER_CALL(Tensor, MaxPool2d, (const Tensor& x), (x))
std::string MaxPool2d::extra() const {
  return str("kernel_size=", short_tuple(kernel_size),
             ", stride=", short_tuple(options.stride.value_or(kernel_size)),
             ", padding=", short_tuple(options.padding),
             ", dilation=", short_tuple(options.dilation), ", ceil_mode=", word(options.ceil_mode));
}

MaxPool1d::MaxPool1d(std::int64_t kernel, const MaxPool1dOptions& o)
    : kernel_size(kernel), options(o) {}
Tensor MaxPool1d::forward(const Tensor& x) const { return max_pool1d(x, kernel_size, options); }
BRAID_LAYER_CALL(Tensor, MaxPool1d, (const Tensor& x), (x))
std::string MaxPool1d::extra() const {
  return str("kernel_size=", kernel_size, ", stride=", options.stride.value_or(kernel_size),
             ", padding=", options.padding, ", dilation=", options.dilation,
             ", ceil_mode=", word(options.ceil_mode));
}

AvgPool2d::AvgPool2d(Size2 kernel, const AvgPool2dOptions& o) : kernel_size(kernel), options(o) {}
Tensor AvgPool2d::forward(const Tensor& x) const { return avg_pool2d(x, kernel_size, options); }
BRAID_LAYER_CALL(Tensor, AvgPool2d, (const Tensor& x), (x))
std::string AvgPool2d::extra() const {
  return str("kernel_size=", short_tuple(kernel_size),
             ", stride=", short_tuple(options.stride.value_or(kernel_size)),
             ", padding=", short_tuple(options.padding));
}

AvgPool1d::AvgPool1d(std::int64_t kernel, const AvgPool1dOptions& o)
    : kernel_size(kernel), options(o) {}
Tensor AvgPool1d::forward(const Tensor& x) const { return avg_pool1d(x, kernel_size, options); }
BRAID_LAYER_CALL(Tensor, AvgPool1d, (const Tensor& x), (x))
std::string AvgPool1d::extra() const {
  return str("kernel_size=", tuple(kernel_size),
             ", stride=", tuple(options.stride.value_or(kernel_size)),
             ", padding=", tuple(options.padding));
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 size) : output_size(size) {}
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) const {
  return adaptive_avg_pool2d(x, output_size);
}
BRAID_LAYER_CALL(Tensor, AdaptiveAvgPool2d, (const Tensor& x), (x))
std::string AdaptiveAvgPool2d::extra() const {
  return str("output_size=", short_tuple(output_size));
}

AdaptiveAvgPool1d::AdaptiveAvgPool1d(std::int64_t size) : output_size(size) {}
Tensor AdaptiveAvgPool1d::forward(const Tensor& x) const {
  return adaptive_avg_pool1d(x, output_size);
}
BRAID_LAYER_CALL(Tensor, AdaptiveAvgPool1d, (const Tensor& x), (x))
std::string AdaptiveAvgPool1d::extra() const { return str("output_size=", output_size); }

AdaptiveMaxPool2d::AdaptiveMaxPool2d(Size2 size) : output_size(size) {}
Tensor AdaptiveMaxPool2d::forward(const Tensor& x) const {
  return adaptive_max_pool2d(x, output_size);
}
BRAID_LAYER_CALL(Tensor, AdaptiveMaxPool2d, (const Tensor& x), (x))
std::string AdaptiveMaxPool2d::extra() const {
  return str("output_size=", short_tuple(output_size));
}

Upsample::Upsample(const InterpolateOptions& o) : options(o) {}
Tensor Upsample::forward(const Tensor& x) const { return interpolate(x, options); }
BRAID_LAYER_CALL(Tensor, Upsample, (const Tensor& x), (x))
std::string Upsample::extra() const {
  std::string text;
  if (options.scale_factor) {
    const auto [h, w] = *options.scale_factor;
    text = h == w ? "scale_factor=" + decimal(h)
                  : str("scale_factor=(", decimal(h), ", ", decimal(w), ')');
  } else if (options.size) {
    text = "size=" + short_tuple(*options.size);
  }
  return text + ", mode=" + name_of(options.mode);
}

namespace functional {
namespace {
template <class T> void check_count(const char* option, const std::vector<T>& numbers) {
  if (numbers.empty() || numbers.size() > 2)
    throw ShapeError(str("InterpolateFuncOptions: expected 1 or 2 numbers as ", option, ", got ",
                         numbers.size()));
}
}  // namespace

InterpolateFuncOptions& InterpolateFuncOptions::size(const std::vector<std::int64_t>& sizes) {
  check_count("size", sizes);
  Base::size = Size2(sizes.front(), sizes.back());
  return *this;
}
InterpolateFuncOptions& InterpolateFuncOptions::scale_factor(const std::vector<double>& factors) {
  check_count("scale_factor", factors);
  Base::scale_factor = Factor2(factors.front(), factors.back());
  return *this;
}
}  // namespace functional

}  // namespace braid::nn
