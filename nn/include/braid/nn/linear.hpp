#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

namespace braid::nn {

struct LinearOptions {
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// y = x weightᵀ + bias.
///
/// Shapes    x [.., in] → [.., out]; weight [out, in]; bias [out], undefined without bias
/// Starts    weight and bias uniform in [-1/√in, 1/√in), as in PyTorch
/// Throws    ArgumentError if a size is negative. A call throws ShapeError, DTypeError or
///           DeviceError, as braid::linear
struct Linear : Module {
  Parameter weight, bias;

  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

}  // namespace braid::nn
