#include <cmath>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/nn/optim/clip.hpp>

namespace braid::optim {
namespace {

/// Returns the p-norm of one tensor's elements, as a scalar.
Tensor norm_of(const Tensor& x, double p) {
  const Tensor wide = size_of(x.dtype()) == 2 ? x.to(DType::float32) : x;
  if (x.numel() == 0) return zeros({}, {.device = wide.device(), .dtype = wide.dtype()});
  if (std::isinf(p)) return max(abs(wide));
  if (p == 2) return sqrt(sum(square(wide)));
  if (p == 1) return sum(abs(wide));
  if (p == 0)
    return sum(
        ne(wide, zeros({}, {.device = wide.device(), .dtype = wide.dtype()})).to(wide.dtype()));
  return pow(sum(pow(abs(wide), p)), 1 / p);
}

std::vector<Tensor> gradients_of(const char* name, std::span<const Tensor> parameters) {
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined())
      throw ArgumentError(
          str(name, ": expected defined parameters, got an undefined one at position ", i));
    if (const Tensor g = parameters[i].grad(); g.defined()) list.push_back(g.detach());
  }
  return list;
}

Tensor total_norm(const char* name, std::span<const Tensor> tensors, double p,
                  bool error_if_nonfinite) {
  if (!(p >= 0)) throw ArgumentError(str(name, ": expected norm_type >= 0, got ", p));
  const NoGrad guard;
  std::vector<Tensor> norms;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined())
      throw ArgumentError(
          str(name, ": expected defined tensors, got an undefined one at position ", i));
    if (!is_floating(tensors[i].dtype()))
      throw DTypeError(str(name, ": expected floating point tensors, got ", tensors[i].dtype(),
                           " at position ", i));
    const Tensor norm = norm_of(tensors[i], p);
    norms.push_back(norms.empty() ? norm : norm.to(norms[0].device(), norms[0].dtype()));
  }
  if (norms.empty()) return zeros({});
  // The total norm is the norm of the norms; for p = 0 (the number of non-zeros) it is their sum.
  const Tensor all = stack(norms), total = p == 0 ? sum(all) : norm_of(all, p);
  if (error_if_nonfinite && !std::isfinite(total.item<double>()))
    throw ArgumentError(
        str(name, ": expected a finite total norm of order ", p, ", got ", total.item<double>()));
  return total;
}

}  // namespace

Tensor get_total_norm(std::span<const Tensor> tensors, double norm_type, bool error_if_nonfinite) {
  return total_norm("get_total_norm", tensors, norm_type, error_if_nonfinite);
}

Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  if (!(max_norm >= 0))
    throw ArgumentError(str("clip_grad_norm_: expected max_norm >= 0, got ", max_norm));
  const std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters);
  const NoGrad guard;
  Tensor total = total_norm("clip_grad_norm_", gradients, norm_type, error_if_nonfinite);
  const Tensor factor = minimum(max_norm / (total + 1e-6),
                                ones({}, {.device = total.device(), .dtype = total.dtype()}));
  std::vector<Tensor> factors;  // do everything that can fail first
  for (const Tensor& g : gradients) factors.push_back(factor.to(g.device(), g.dtype()));
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i].mul_(factors[i]);
  return total;
}

void clip_grad_value_(std::span<const Tensor> parameters, double clip_value) {
  if (!(clip_value >= 0))
    throw ArgumentError(str("clip_grad_value_: expected clip_value >= 0, got ", clip_value));
  const std::vector<Tensor> gradients = gradients_of("clip_grad_value_", parameters);
  const NoGrad guard;
  std::vector<Tensor> clipped;
  for (const Tensor& g : gradients) {
    const FactoryOptions like{.device = g.device(), .dtype = g.dtype()};
    clipped.push_back(minimum(maximum(g, full({}, -clip_value, like)), full({}, clip_value, like)));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i].copy_(clipped[i]);
}

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type,
                      bool error_if_nonfinite) {
  return get_total_norm(std::span<const Tensor>(tensors), norm_type, error_if_nonfinite);
}
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::span<const Tensor>(parameters), max_norm, norm_type,
                         error_if_nonfinite);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  clip_grad_value_(std::span<const Tensor>(parameters), clip_value);
}

}  // namespace braid::optim
