#pragma once
#include <cstdint>
#include <string>

#include <braid/core/ops/pool.hpp>
#include <braid/nn/module.hpp>

// Pooling and resizing layers, for nn::Sequential. The functions of the same names
// (braid/core/ops/pool.hpp) document shapes, options and errors.
namespace braid::nn {

/// braid::max_pool2d as a layer.
///
///     nn::MaxPool2d half{2}, overlapping{3, {.stride = 2, .padding = 1}};
struct MaxPool2d : Module {
  Size2 kernel_size;
  MaxPool2dOptions options;
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::max_pool1d as a layer.
struct MaxPool1d : Module {
  std::int64_t kernel_size;
  MaxPool1dOptions options;
  explicit MaxPool1d(std::int64_t kernel_size, const MaxPool1dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::avg_pool2d as a layer.
struct AvgPool2d : Module {
  Size2 kernel_size;
  AvgPool2dOptions options;
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::avg_pool1d as a layer.
struct AvgPool1d : Module {
  std::int64_t kernel_size;
  AvgPool1dOptions options;
  explicit AvgPool1d(std::int64_t kernel_size, const AvgPool1dOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::adaptive_avg_pool2d as a layer.
struct AdaptiveAvgPool2d : Module {
  Size2 output_size;
  explicit AdaptiveAvgPool2d(Size2 output_size);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::adaptive_avg_pool1d as a layer.
struct AdaptiveAvgPool1d : Module {
  std::int64_t output_size;
  explicit AdaptiveAvgPool1d(std::int64_t output_size);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::adaptive_max_pool2d as a layer.
struct AdaptiveMaxPool2d : Module {
  Size2 output_size;
  explicit AdaptiveMaxPool2d(Size2 output_size);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::interpolate as a layer: `nn::Upsample{{.scale_factor = 2}}`.
struct Upsample : Module {
  InterpolateOptions options;
  explicit Upsample(const InterpolateOptions& options);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

}  // namespace braid::nn
