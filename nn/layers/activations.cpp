#include <charconv>

#include <braid/core/error.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/nn/activations.hpp>

#include "layers/call.hpp"

namespace braid::nn {

namespace {

/// Formats a number as Python's str(float): the shortest text that reads back as the same number,
/// with ".0" if it looks like an integer; scientific below 1e-4 and from 1e16 on.
std::string number(double x) {
  char text[32];
  const double size = x < 0 ? -x : x;
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end =
      std::to_chars(text, text + sizeof text, x,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string out(text, end);
  return out.find_first_of(".eni") == std::string::npos ? out + ".0" : out;
}

}  // namespace

Tensor ReLU::forward(const Tensor& x) const { return relu(x); }
BRAID_LAYER_CALL(Tensor, ReLU, (const Tensor& x), (x))
Tensor Tanh::forward(const Tensor& x) const { return tanh(x); }
BRAID_LAYER_CALL(Tensor, Tanh, (const Tensor& x), (x))
Tensor Sigmoid::forward(const Tensor& x) const { return sigmoid(x); }
BRAID_LAYER_CALL(Tensor, Sigmoid, (const Tensor& x), (x))
GELU::GELU(std::string how) : approximate(std::move(how)) {
  if (approximate != "none" && approximate != "tanh")
    throw ArgumentError(
        str("GELU: expected approximate \"none\" or \"tanh\", got \"", approximate, '"'));
}
Tensor GELU::forward(const Tensor& x) const { return gelu(x, approximate); }
BRAID_LAYER_CALL(Tensor, GELU, (const Tensor& x), (x))
std::string GELU::extra() const { return str("approximate='", approximate, "'"); }
Softplus::Softplus(double sharpness, double linear_from)
    : beta(sharpness), threshold(linear_from) {}
Tensor Softplus::forward(const Tensor& x) const { return softplus(x, beta, threshold); }
BRAID_LAYER_CALL(Tensor, Softplus, (const Tensor& x), (x))
std::string Softplus::extra() const {
  return str("beta=", number(beta), ", threshold=", number(threshold));
}
ELU::ELU(double scale) : alpha(scale) {}
Tensor ELU::forward(const Tensor& x) const { return elu(x, alpha); }
BRAID_LAYER_CALL(Tensor, ELU, (const Tensor& x), (x))
std::string ELU::extra() const { return str("alpha=", number(alpha)); }
CELU::CELU(double scale) : alpha(scale) {}
Tensor CELU::forward(const Tensor& x) const { return celu(x, alpha); }
BRAID_LAYER_CALL(Tensor, CELU, (const Tensor& x), (x))
std::string CELU::extra() const { return str("alpha=", number(alpha)); }
LeakyReLU::LeakyReLU(double slope) : negative_slope(slope) {}
Tensor LeakyReLU::forward(const Tensor& x) const { return leaky_relu(x, negative_slope); }
BRAID_LAYER_CALL(Tensor, LeakyReLU, (const Tensor& x), (x))
std::string LeakyReLU::extra() const { return str("negative_slope=", number(negative_slope)); }
Hardtanh::Hardtanh(double low, double high) : min_val(low), max_val(high) {
  if (!(low < high))
    throw ArgumentError(str("Hardtanh: expected min_val < max_val, got ", low, " and ", high));
}
Tensor Hardtanh::forward(const Tensor& x) const { return hardtanh(x, min_val, max_val); }
BRAID_LAYER_CALL(Tensor, Hardtanh, (const Tensor& x), (x))
std::string Hardtanh::extra() const {
  return str("min_val=", number(min_val), ", max_val=", number(max_val));
}
#define BRAID_CALL(Class, op)                                    \
  Tensor Class::forward(const Tensor& x) const { return op(x); } \
  BRAID_LAYER_CALL(Tensor, Class, (const Tensor& x), (x))
BRAID_ACTIVATION_LAYERS(BRAID_CALL)
#undef BRAID_CALL
BRAID_LAYER_CALL(Tensor, Identity, (const Tensor& x), (x))
GLU::GLU(std::int64_t along) : dim(along) {}
Tensor GLU::forward(const Tensor& x) const { return glu(x, dim); }
BRAID_LAYER_CALL(Tensor, GLU, (const Tensor& x), (x))
std::string GLU::extra() const { return str("dim=", dim); }
Hardshrink::Hardshrink(double half) : lambda(half) {}
Tensor Hardshrink::forward(const Tensor& x) const { return hardshrink(x, lambda); }
BRAID_LAYER_CALL(Tensor, Hardshrink, (const Tensor& x), (x))
std::string Hardshrink::extra() const { return str("lambda=", number(lambda)); }
Softshrink::Softshrink(double half) : lambda(half) {
  if (!(half >= 0)) throw ArgumentError(str("Softshrink: expected lambda >= 0, got ", half));
}
Tensor Softshrink::forward(const Tensor& x) const { return softshrink(x, lambda); }
BRAID_LAYER_CALL(Tensor, Softshrink, (const Tensor& x), (x))
std::string Softshrink::extra() const { return str("lambda=", number(lambda)); }
Threshold::Threshold(double limit, double below) : threshold(limit), value(below) {}
Tensor Threshold::forward(const Tensor& x) const { return braid::threshold(x, threshold, value); }
BRAID_LAYER_CALL(Tensor, Threshold, (const Tensor& x), (x))
std::string Threshold::extra() const {
  return str("threshold=", number(threshold), ", value=", number(value));
}
PReLU::PReLU(std::int64_t count, const PReLUOptions& options) : num_parameters(count) {
  if (count < 1) throw ArgumentError(str("PReLU: expected num_parameters >= 1, got ", count));
  weight =
      Parameter(full({count}, options.init,
                     {.device = options.device, .dtype = options.dtype.value_or(DType::float32)}));
}
Tensor PReLU::forward(const Tensor& x) const { return prelu(x, weight); }
BRAID_LAYER_CALL(Tensor, PReLU, (const Tensor& x), (x))
std::string PReLU::extra() const { return str("num_parameters=", num_parameters); }
Softmin::Softmin(std::int64_t along) : dim(along) {}
Tensor Softmin::forward(const Tensor& x) const { return softmin(x, dim); }
BRAID_LAYER_CALL(Tensor, Softmin, (const Tensor& x), (x))
std::string Softmin::extra() const { return str("dim=", dim); }
Tensor Softmax2d::forward(const Tensor& x) const {
  if (x.dim() != 3 && x.dim() != 4)
    throw ShapeError(str("Softmax2d: expected 3 or 4 dimensions, got ", x.shape()));
  return softmax(x, -3);
}
BRAID_LAYER_CALL(Tensor, Softmax2d, (const Tensor& x), (x))
Unflatten::Unflatten(std::int64_t at, const Shape& sizes) : dim(at), unflattened_size(sizes) {}
Tensor Unflatten::forward(const Tensor& x) const { return unflatten(x, dim, unflattened_size); }
BRAID_LAYER_CALL(Tensor, Unflatten, (const Tensor& x), (x))
std::string Unflatten::extra() const {
  return str("dim=", dim, ", unflattened_size=", unflattened_size);
}
CosineSimilarity::CosineSimilarity(std::int64_t along, double least) : dim(along), eps(least) {}
Tensor CosineSimilarity::forward(const Tensor& a, const Tensor& b) const {
  return cosine_similarity(a, b, dim, eps);
}
BRAID_LAYER_CALL(Tensor, CosineSimilarity, (const Tensor& a, const Tensor& b), (a, b))
PairwiseDistance::PairwiseDistance(double power, double added, bool keep)
    : p(power), eps(added), keepdim(keep) {}
Tensor PairwiseDistance::forward(const Tensor& a, const Tensor& b) const {
  return pairwise_distance(a, b, p, eps, keepdim);
}
BRAID_LAYER_CALL(Tensor, PairwiseDistance, (const Tensor& a, const Tensor& b), (a, b))
Softmax::Softmax(std::int64_t along) : dim(along) {}
Tensor Softmax::forward(const Tensor& x) const { return softmax(x, dim); }
BRAID_LAYER_CALL(Tensor, Softmax, (const Tensor& x), (x))
std::string Softmax::extra() const { return str("dim=", dim); }
LogSoftmax::LogSoftmax(std::int64_t along) : dim(along) {}
Tensor LogSoftmax::forward(const Tensor& x) const { return log_softmax(x, dim); }
BRAID_LAYER_CALL(Tensor, LogSoftmax, (const Tensor& x), (x))
std::string LogSoftmax::extra() const { return str("dim=", dim); }
Flatten::Flatten(std::int64_t start, std::int64_t end) : start_dim(start), end_dim(end) {}
Tensor Flatten::forward(const Tensor& x) const { return x.flatten(start_dim, end_dim); }
BRAID_LAYER_CALL(Tensor, Flatten, (const Tensor& x), (x))
std::string Flatten::extra() const { return str("start_dim=", start_dim, ", end_dim=", end_dim); }

BRAID_FIELDS_DEFINED(PReLU, weight)

}  // namespace braid::nn
