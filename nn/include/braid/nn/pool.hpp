#pragma once
#include <cstdint>
#include <string>

#include <braid/core/ops/pool.hpp>
#include <braid/nn/module.hpp>

// Pooling and resizing layers, for nn::Sequential. The functions of the same names
// (braid/core/ops/pool.hpp) document shapes, options and errors.
namespace braid::nn {

/// For example `nn::MaxPool2d{2}` or `nn::MaxPool2d{3, {.stride = 2, .padding = 1}}`.
struct MaxPool2d : Module {
  Size2 kernel_size;
  MaxPool2dOptions options;
  explicit MaxPool2d(Size2 kernel, const MaxPool2dOptions& with = {})
      : kernel_size(kernel), options(with) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct MaxPool1d : Module {
  std::int64_t kernel_size;
  MaxPool1dOptions options;
  explicit MaxPool1d(std::int64_t kernel, const MaxPool1dOptions& with = {})
      : kernel_size(kernel), options(with) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct AvgPool2d : Module {
  Size2 kernel_size;
  AvgPool2dOptions options;
  explicit AvgPool2d(Size2 kernel, const AvgPool2dOptions& with = {})
      : kernel_size(kernel), options(with) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct AvgPool1d : Module {
  std::int64_t kernel_size;
  AvgPool1dOptions options;
  explicit AvgPool1d(std::int64_t kernel, const AvgPool1dOptions& with = {})
      : kernel_size(kernel), options(with) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct AdaptiveAvgPool2d : Module {
  Size2 output_size;
  explicit AdaptiveAvgPool2d(Size2 size) : output_size(size) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct AdaptiveAvgPool1d : Module {
  std::int64_t output_size;
  explicit AdaptiveAvgPool1d(std::int64_t size) : output_size(size) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct AdaptiveMaxPool2d : Module {
  Size2 output_size;
  explicit AdaptiveMaxPool2d(Size2 size) : output_size(size) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// braid::interpolate as a layer: `nn::Upsample{{.scale_factor = 2}}`.
struct Upsample : Module {
  InterpolateOptions options;
  explicit Upsample(const InterpolateOptions& with) : options(with) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

}  // namespace braid::nn
