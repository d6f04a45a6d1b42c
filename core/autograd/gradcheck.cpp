// Compares gradients with central differences.
#include <algorithm>
#include <cmath>

#include <braid/core/jacobian.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/random.hpp>

namespace braid::detail {
namespace {

using Tensors = std::vector<Tensor>;

/// Where a gradient differs.
std::string place(std::size_t output, std::int64_t row, std::size_t input, std::int64_t column) {
  return str("d output ", output, " [", row, "] / d input ", input, " [", column, "]");
}

std::vector<double> values(const Tensor& t) { return t.detach().to_vector<double>(); }

/// Copies of the inputs, for calls at other points.
Tensors copies(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& x : inputs) {
    out.push_back(x.detach().clone());
    if (x.requires_grad()) out.back().requires_grad_();
  }
  return out;
}

/// The inputs that require a gradient; throws unless they are float64 and there is one.
std::vector<std::size_t> checked_inputs(const Tensors& inputs) {
  std::vector<std::size_t> checked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    if (inputs[i].dtype() != DType::float64)
      throw DTypeError(str("gradcheck: expected float64 inputs, because differences are exact to ",
                           "half of the digits only, got ", inputs[i].dtype(), " (input ", i, ")"));
    checked.push_back(i);
  }
  if (checked.empty())
    throw ArgumentError("gradcheck: expected an input that requires a gradient, got none");
  return checked;
}

/// Row `row` of the Jacobian of output y: the gradients of one element, for each checked input.
std::vector<std::vector<double>> gradients_of(const Tensor& y, std::int64_t row,
                                              const Tensors& inputs,
                                              const std::vector<std::size_t>& checked) {
  Tensors leaves;
  for (const std::size_t i : checked) leaves.push_back(inputs[i]);
  Tensors gradients(leaves.size());
  if (y.requires_grad()) {
    const Tensor unit = zeros_like(y.detach());
    unit.view({-1})[row].fill_(1);
    gradients = grad(Tensors{y}, leaves, Tensors{unit}, true, false, true);
  }
  std::vector<std::vector<double>> rows;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Tensor &g = gradients[k], &x = leaves[k];
    if (g.defined() &&
        (g.shape() != x.shape() || g.dtype() != x.dtype() || g.device() != x.device()))
      throw AutogradError(str("gradcheck: expected a gradient ", x.dtype(), " ", x.shape(), " on ",
                              x.device(), " for input ", checked[k], ", got ", g.dtype(), " ",
                              g.shape(), " on ", g.device()));
    rows.push_back(g.defined() ? values(g)
                               : std::vector<double>(static_cast<std::size_t>(x.numel()), 0.0));
  }
  return rows;
}

/// The derivative of all outputs by one element of an input, by differences.
std::vector<std::vector<double>> difference(const TensorFunction& f, const Tensors& inputs,
                                            std::size_t input, std::int64_t element, double eps) {
  const auto at = [&](double step) {
    const Tensors point = copies(inputs);
    point[input].detach().view({-1})[element].add_(step);
    return f(point);
  };
  const Tensors up = at(eps), down = at(-eps);
  std::vector<std::vector<double>> slopes;
  for (std::size_t k = 0; k < up.size(); ++k) {
    slopes.push_back(values(up[k]));
    const std::vector<double> below = values(down.at(k));
    for (std::size_t i = 0; i < below.size(); ++i)
      slopes.back().at(i) = (slopes.back()[i] - below[i]) / (2 * eps);
  }
  return slopes;
}

/// Throws AutogradError at the first difference.
void check(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  const std::vector<std::size_t> checked = checked_inputs(inputs);
  const Tensors outputs = f(inputs);
  // by input and element: the slopes of all outputs
  std::vector<std::vector<std::vector<std::vector<double>>>> slopes(checked.size());
  for (std::size_t k = 0; k < checked.size(); ++k)
    for (std::int64_t e = 0; e < inputs[checked[k]].numel(); ++e)
      slopes[k].push_back(difference(f, inputs, checked[k], e, options.eps));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!is_floating(outputs[o].dtype())) continue;
    for (std::int64_t row = 0; row < outputs[o].numel(); ++row) {
      const auto got = gradients_of(outputs[o], row, inputs, checked),
                 again = gradients_of(outputs[o], row, inputs, checked);
      for (std::size_t k = 0; k < checked.size(); ++k)
        for (std::size_t e = 0; e < got[k].size(); ++e) {
          const double want = slopes[k][e].at(o).at(static_cast<std::size_t>(row)),
                       gradient = got[k][e];
          const std::string where = place(o, row, checked[k], static_cast<std::int64_t>(e));
          if (!(std::fabs(gradient - want) <= options.atol + options.rtol * std::fabs(want)))
            throw AutogradError(str("gradcheck: ", where, ": expected ", want,
                                    " (by differences), got ", gradient, " (the gradient)"));
          if (!(std::fabs(gradient - again[k][e]) <= options.nondet_tol))
            throw AutogradError(str("gradcheck: ", where,
                                    ": expected the same from two backwards, ", "got ", gradient,
                                    " and ", again[k][e]));
        }
    }
  }
}

}  // namespace

bool gradcheck(const TensorFunction& f, const Tensors& inputs, const GradcheckOptions& options) {
  if (options.raise_exception) {
    check(f, inputs, options);
    return true;
  }
  try {
    check(f, inputs, options);
    return true;
  } catch (const AutogradError&) {
    return false;
  }
}

bool gradgradcheck(const TensorFunction& f, const Tensors& inputs,
                   const GradcheckOptions& options) {
  (void)checked_inputs(inputs);
  Tensors all = inputs;
  for (const Tensor& y : f(inputs))
    if (y.requires_grad())
      all.push_back(
          uniform(y.shape(), -1, 1, {.device = y.device(), .dtype = y.dtype(), .seed = all.size()})
              .requires_grad_());
  const std::size_t n = inputs.size();
  const TensorFunction gradient = [&f, n](const Tensors& point) {
    const auto middle = point.begin() + static_cast<std::ptrdiff_t>(n);
    const Tensors in(point.begin(), middle);
    Tensors roots, leaves, result;
    for (const Tensor& y : f(in))
      if (y.requires_grad()) roots.push_back(y);
    for (const Tensor& t : in)
      if (t.requires_grad()) leaves.push_back(t);
    const Tensors weights(middle, point.end());
    for (const Tensor& g : grad(roots, leaves, weights, true, true, true))
      if (g.defined()) result.push_back(g);
    return result;
  };
  return gradcheck(gradient, all, options);
}

}  // namespace braid::detail
