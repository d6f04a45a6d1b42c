#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/internal/fused.hpp>
#include <braid/nn/linear.hpp>

#include "layers/call.hpp"

namespace braid::nn {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options)
    : in_features(in), out_features(out) {
  if (in_features < 0)
    throw ArgumentError(str("Linear: expected in_features >= 0, got ", in_features));
  if (out_features < 0)
    throw ArgumentError(str("Linear: expected out_features >= 0, got ", out_features));
  // PyTorch's kaiming_uniform with a = √5: √(6 / ((1 + a²) in)) = 1/√in.
  const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  weight = Parameter(uniform({out_features, in_features}, -bound, bound, made));
  if (options.bias) bias = Parameter(uniform({out_features}, -bound, bound, made));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight, bias); }
BRAID_LAYER_CALL(Tensor, Linear, (const Tensor& x), (x))

Tensor detail::call_fused(const Linear& linear, const ReLU& /*activation*/, const Tensor& x) {
  return call(linear, [&] { return linear_relu(x, linear.weight, linear.bias); }, x);
}
Tensor detail::call_fused(const Linear& linear, const GELU& activation, const Tensor& x) {
  return call(
      linear, [&] { return linear_gelu(x, linear.weight, linear.bias, activation.approximate); },
      x);
}

std::string Linear::extra() const {
  if (!weight.defined()) return "moved from";
  return str("in_features=", weight.size(1), ", out_features=", weight.size(0),
             ", bias=", bias.defined() ? "true" : "false");
}

BRAID_FIELDS_DEFINED(Linear, weight, bias)

}  // namespace braid::nn
