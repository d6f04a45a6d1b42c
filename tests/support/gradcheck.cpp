#include "support/gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace braid::test {
namespace {

/// The values of all inputs, which tensors() converts to the tensors that the function is called
/// with.
struct Point {
  std::vector<Array> values;
  std::vector<Tensor> like;
  [[nodiscard]] std::vector<Tensor> tensors() const {
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < like.size(); ++i) {
      out.push_back(tensor_of(values[i], like[i].dtype(), like[i].device()));
      if (like[i].requires_grad()) out.back().requires_grad_();
    }
    return out;
  }
};

/// Returns the elements of all floating-point outputs in order.
std::vector<double> flatten(const std::vector<Tensor>& outputs) {
  std::vector<double> flat;
  for (const Tensor& t : outputs)
    if (is_floating(t.dtype())) {
      const Array a = array_of(t);
      flat.insert(flat.end(), a.data.begin(), a.data.end());
    }
  return flat;
}

/// Computes d(Σ weights · outputs) / d(inputs that require a gradient), flattened; an undefined
/// gradient counts as zeros.
std::vector<double> pull_back(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& weights) {
  std::vector<Tensor> roots, seeds, leaves;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad()) {
      roots.push_back(outputs[i]);
      seeds.push_back(weights[i]);
    }
  for (const Tensor& t : inputs)
    if (t.requires_grad()) leaves.push_back(t);
  std::vector<Tensor> gradients(leaves.size());
  if (!roots.empty()) gradients = grad(roots, leaves, seeds, true, false, true);
  std::vector<double> flat;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Array a =
        gradients[i].defined() ? array_of(gradients[i]) : Array(sizes_of(leaves[i].shape()));
    if (gradients[i].defined() &&
        (gradients[i].shape() != leaves[i].shape() || gradients[i].dtype() != leaves[i].dtype() ||
         gradients[i].device() != leaves[i].device()))
      throw std::logic_error(str("gradient of input ", i, ": ", gradients[i].dtype(), " ",
                                 gradients[i].shape(), " on ", gradients[i].device(),
                                 ", but the input is ", leaves[i].dtype(), " ", leaves[i].shape(),
                                 " on ", leaves[i].device()));
    flat.insert(flat.end(), a.data.begin(), a.data.end());
  }
  return flat;
}

/// Splits a flat list into weights of the outputs' shapes.
std::vector<Tensor> weights_like(const std::vector<Tensor>& outputs,
                                 const std::vector<double>& flat) {
  std::vector<Tensor> weights;
  std::size_t next = 0;
  for (const Tensor& t : outputs) {
    Array a(sizes_of(t.shape()));
    if (is_floating(t.dtype()))
      for (double& v : a.data) v = flat.at(next++);
    weights.push_back(
        tensor_of(a, is_floating(t.dtype()) ? t.dtype() : DType::float64, t.device()));
  }
  return weights;
}

/// Makes random weights for the outputs, each in layout `k` (modulo their count) of those that it
/// can have.
std::vector<Tensor> weights_in_layout(const std::vector<Tensor>& outputs, std::size_t k) {
  Numbers numbers(79 + k);
  std::vector<Tensor> weights;
  for (const Tensor& t : outputs) {
    const std::vector<Layout> of = layouts(sizes_of(t.shape()));
    const Layout& l = of[k % of.size()];
    weights.push_back(strided(sizes_of(t.shape()), l.strides, l.offset,
                              is_floating(t.dtype()) ? t.dtype() : DType::float64, t.device(),
                              [&] { return numbers.uniform(-1, 1); }));
  }
  return weights;
}

/// Returns "" if an incoming gradient of any layout gives the same result, up to rounding, as a
/// contiguous one with the same numbers.
std::string incoming_layouts_matter(const std::vector<Tensor>& outputs,
                                    const std::vector<Tensor>& inputs) {
  std::size_t most = 0;
  for (const Tensor& t : outputs) most = std::max(most, layouts(sizes_of(t.shape())).size());
  for (std::size_t k = 1; k < most; ++k) {
    const std::vector<Tensor> laid_out = weights_in_layout(outputs, k);
    std::vector<Tensor> dense;
    for (const Tensor& w : laid_out) dense.push_back(tensor_of(array_of(w), w.dtype(), w.device()));
    const std::vector<double> want = pull_back(outputs, inputs, dense),
                              got = pull_back(outputs, inputs, laid_out);
    for (std::size_t c = 0; c < want.size(); ++c)
      if (!(std::fabs(got[c] - want[c]) <= 1e-12 * (1 + std::fabs(want[c]))))
        return str("an incoming gradient in layout ", k, " changes d in[", c, "]: ", want[c],
                   " to ", got[c]);
  }
  return "";
}

/// Returns "" if the gradients agree with differences. The Jacobian by differences is computed
/// column by column on contiguous inputs, that by gradients row by row on the inputs as given.
std::string jacobian_differs(const Function& f, const std::vector<Tensor>& outputs,
                             const std::vector<Tensor>& inputs, Point point,
                             const GradientDifferenceOptions& o) {
  std::vector<std::vector<double>> columns;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    for (double& x : point.values[i].data) {
      const double before = x;
      x = before + o.eps;
      const std::vector<double> up = flatten(f(point.tensors()));
      x = before - o.eps;
      const std::vector<double> down = flatten(f(point.tensors()));
      x = before;
      columns.emplace_back();
      for (std::size_t k = 0; k < up.size(); ++k)
        columns.back().push_back((up[k] - down.at(k)) / (2 * o.eps));
    }
  }
  const std::size_t rows = flatten(outputs).size();
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<double> unit(rows, 0.0);
    unit[row] = 1;
    const std::vector<double> got = pull_back(outputs, inputs, weights_like(outputs, unit));
    if (got.size() != columns.size())
      return str("gradients of ", got.size(), " elements, expected ", columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (!(std::fabs(got[c] - columns[c][row]) <= o.atol + o.rtol * std::fabs(columns[c][row])))
        return str("d out[", row, "] / d in[", c, "]: expected ", columns[c][row], ", got ",
                   got[c]);
  }
  return "";
}

/// Returns "" if w J v is the same by gradients and by differences, for random directions v of the
/// inputs and w of the outputs.
std::string directions_differ(const Function& f, const std::vector<Tensor>& outputs,
                              const std::vector<Tensor>& inputs, const Point& point,
                              const GradientDifferenceOptions& o) {
  Numbers numbers(76);
  for (int k = 0; k < o.directions; ++k) {
    std::vector<double> v, w;
    Point above = point, below = point;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::int64_t j = 0; inputs[i].requires_grad() && j < above.values[i].size(); ++j) {
        v.push_back(numbers.uniform(-1, 1));
        above.values[i][j] += o.eps * v.back();
        below.values[i][j] -= o.eps * v.back();
      }
    const std::vector<double> up = flatten(f(above.tensors())), down = flatten(f(below.tensors()));
    double want = 0, got = 0;
    for (std::size_t j = 0; j < up.size(); ++j) {
      w.push_back(numbers.uniform(-1, 1));
      want += w.back() * (up[j] - down.at(j)) / (2 * o.eps);
    }
    const std::vector<double> gradient = pull_back(outputs, inputs, weights_like(outputs, w));
    if (gradient.size() != v.size())
      return str("gradients of ", gradient.size(), " elements, expected ", v.size());
    for (std::size_t j = 0; j < v.size(); ++j) got += gradient[j] * v[j];
    if (!(std::fabs(got - want) <= o.atol + o.rtol * std::fabs(want)))
      return str("along direction ", k, ": expected ", want, ", got ", got);
  }
  return "";
}

}  // namespace

/// Returns "" if the gradients of f at the inputs agree with central differences and two runs give
/// the same bits, else the first difference.
std::string gradient_difference(const Function& f, const std::vector<Tensor>& inputs,
                                const GradientDifferenceOptions& o) {
  const std::vector<Tensor> outputs = f(inputs);
  Point point;
  for (const Tensor& t : inputs) {
    if (t.requires_grad() && t.dtype() != DType::float64)
      return "gradcheck: inputs must be float64";
    point.values.push_back(array_of(t));
    point.like.push_back(t);
  }
  const std::string differs = o.directions > 0 ? directions_differ(f, outputs, inputs, point, o)
                                               : jacobian_differs(f, outputs, inputs, point, o);
  if (!differs.empty()) return differs;
  // Two runs must give the same bits.
  Numbers numbers(77);
  std::vector<double> w(flatten(outputs).size());
  for (double& x : w) x = numbers.uniform(-1, 1);
  const std::vector<double> once = pull_back(outputs, inputs, weights_like(outputs, w));
  const std::vector<double> again = pull_back(outputs, inputs, weights_like(outputs, w));
  for (std::size_t c = 0; c < once.size(); ++c)
    if (once[c] != again[c])
      return str("two runs differ in d in[", c, "]: ", once[c], " and ", again[c]);
  return o.incoming_layouts ? incoming_layouts_matter(outputs, inputs) : "";
}

/// Applies gradient_difference to the gradient itself: (inputs, incoming gradients) →
/// grad(f(inputs), inputs, incoming gradients, create_graph).
std::string second_gradient_difference(const Function& f, const std::vector<Tensor>& inputs,
                                       const GradientDifferenceOptions& o) {
  std::vector<Tensor> all = inputs;
  Numbers numbers(78);
  const std::vector<Tensor> probe = f(inputs);
  for (const Tensor& y : probe)
    if (y.requires_grad()) {
      Array a(sizes_of(y.shape()));
      for (double& x : a.data) x = numbers.uniform(-1, 1);
      all.push_back(tensor_of(a, y.dtype(), y.device()).requires_grad_());
    }
  const std::size_t n = inputs.size();
  const Function gradient = [&f, n](const std::vector<Tensor>& point) {
    const std::vector<Tensor> in(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<Tensor> roots, leaves, result;
    for (const Tensor& y : f(in))
      if (y.requires_grad()) roots.push_back(y);
    for (const Tensor& t : in)
      if (t.requires_grad()) leaves.push_back(t);
    const std::vector<Tensor> weights(point.begin() + static_cast<std::ptrdiff_t>(n), point.end());
    for (Tensor& g : grad(roots, leaves, weights, true, true, true))
      if (g.defined()) result.push_back(std::move(g));
    return result;
  };
  return gradient_difference(gradient, all, o);
}

}  // namespace braid::test
