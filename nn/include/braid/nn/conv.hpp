#pragma once
#include <cstdint>
#include <string>

#include <braid/core/ops/conv.hpp>
#include <braid/nn/module.hpp>

// Convolution layers: `nn::Conv2d{1, 32, 3}`, `nn::Conv2d{64, 64, 3, {.stride = 2, .padding = 1}}`.
namespace braid::nn {

// The options are those of the functions: one type for both.
using braid::Conv1dOptions;
using braid::Conv2dOptions;
using braid::ConvTranspose1dOptions;
using braid::ConvTranspose2dOptions;

/// braid::conv2d with a weight and a bias.
///
/// Shapes    x [n, in, h, w] or [in, h, w] → [n, out, oh, ow] or [out, oh, ow]; weight [out, in /
///           groups, kh, kw]; bias [out], undefined without bias
/// Starts    weight and bias uniform in [-1/√f, 1/√f), f = in / groups · kh · kw, as in PyTorch
/// Throws    ArgumentError if a size is below 1 or groups does not divide both channel counts. A
///           call throws what braid::conv2d throws
///
///     const nn::Conv2d conv(3, 16, 3, {.stride = 2, .padding = 1});
///     conv(randn({8, 3, 32, 32}));  // [8, 16, 16, 16]
struct Conv2d : Module {
  std::int64_t in_channels, out_channels;
  Size2 kernel_size;
  Parameter weight, bias;
  Conv2dOptions options;  ///< as constructed

  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
         const Conv2dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

/// braid::conv1d as a layer: x [n, in, l] or [in, l], weight [out, in / groups, k]. Initial values
/// and errors as Conv2d.
struct Conv1d : Module {
  std::int64_t in_channels, out_channels;
  std::int64_t kernel_size;
  Parameter weight, bias;
  Conv1dOptions options;  ///< as constructed

  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
         const Conv1dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

/// braid::conv_transpose2d with a weight [in, out / groups, kh, kw] and a bias [out]. Initial
/// values and errors as Conv2d, but f = out / groups · kh · kw, as in PyTorch.
struct ConvTranspose2d : Module {
  std::int64_t in_channels, out_channels;
  Size2 kernel_size;
  Parameter weight, bias;
  ConvTranspose2dOptions options;  ///< as constructed

  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
                  const ConvTranspose2dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

/// braid::conv_transpose1d as a layer: weight [in, out / groups, k]. Otherwise as ConvTranspose2d.
struct ConvTranspose1d : Module {
  std::int64_t in_channels, out_channels;
  std::int64_t kernel_size;
  Parameter weight, bias;
  ConvTranspose1dOptions options;  ///< as constructed

  ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                  const ConvTranspose1dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

}  // namespace braid::nn
