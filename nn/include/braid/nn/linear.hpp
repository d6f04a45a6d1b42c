#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

namespace braid::nn {

/// The options of Linear.
struct LinearOptions {
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// y = x weightᵀ + bias.
///
/// Shapes    x [.., in_features] → [.., out_features]; weight [out_features, in_features]; bias
///           [out_features], undefined without bias
/// Starts    weight and bias uniform in [-1/√in_features, 1/√in_features), as in PyTorch
/// Throws    ArgumentError if a size is negative. A call throws ShapeError, DTypeError or
///           DeviceError, as braid::linear
///
///     const nn::Linear layer(5, 2);
///     layer(randn({30, 5}));  // [30, 2]
struct Linear : Module {
  std::int64_t in_features, out_features;
  Parameter weight, bias;

  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

}  // namespace braid::nn
