#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/core/ops/conv.hpp>
#include <braid/nn/module.hpp>

// Convolution layers: `nn::Conv2d{1, 32, 3}`, `nn::Conv2d{64, 64, 3, {.stride = 2, .padding = 1}}`.
namespace braid::nn {

struct Conv1dOptions {
  std::int64_t stride = 1;
  ConvPadding padding = 0;  ///< numbers, "same" or "valid"
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};
struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t dilation = 1;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// braid::conv2d with a weight and a bias.
///
/// Shapes    x [n, in, h, w] or [in, h, w] → [n, out, oh, ow] or [out, oh, ow]; weight [out, in /
///           groups, kh, kw]; bias [out], undefined without bias
/// Starts    weight and bias uniform in [-1/√f, 1/√f), f = in / groups · kh · kw, as in PyTorch
/// Throws    ArgumentError if a size is below 1 or groups does not divide both channel counts. A
///           call throws what braid::conv2d throws
struct Conv2d : Module {
  Parameter weight, bias;
  braid::Conv2dOptions options;

  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
         const Conv2dOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

/// braid::conv1d as a layer: x [n, in, l] or [in, l], weight [out, in / groups, k]. Initial values
/// and errors as Conv2d.
struct Conv1d : Module {
  Parameter weight, bias;
  braid::Conv1dOptions options;

  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
         const Conv1dOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

/// braid::conv_transpose2d with a weight [in, out / groups, kh, kw] and a bias [out]. Initial
/// values and errors as Conv2d, but f = out / groups · kh · kw, as in PyTorch.
struct ConvTranspose2d : Module {
  Parameter weight, bias;
  braid::ConvTranspose2dOptions options;

  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
                  const ConvTranspose2dOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

/// braid::conv_transpose1d as a layer: weight [in, out / groups, k]. Otherwise as ConvTranspose2d.
struct ConvTranspose1d : Module {
  Parameter weight, bias;
  braid::ConvTranspose1dOptions options;

  ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                  const ConvTranspose1dOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

}  // namespace braid::nn
