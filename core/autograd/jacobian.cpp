// Products with the Jacobian of a function, the Jacobian and the Hessian: each is made of calls of
// grad().
#include <braid/core/jacobian.hpp>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>

namespace braid::detail {
namespace {

/// Returns another tensor with the memory of x, and x's gradient.
Tensor alias(const Tensor& x) {
  const GradMode on(true);
  return record("view", {x}, make_view(x, x.shape(), x.strides(), x.storage_offset()),
                [](const Tensor& dy) -> Grads { return {dy}; });
}

/// The inputs as they are given to f: tensors that require a gradient, each a tensor of its own, so
/// that one given twice is two inputs. Without create_graph they are leaves, so that the graph ends
/// there.
std::vector<Tensor> followed(const char* op, const std::vector<Tensor>& inputs, bool create_graph) {
  std::vector<Tensor> out;
  for (const Tensor& x : inputs) {
    if (!is_floating(x.dtype()))
      throw DTypeError(str(op, ": expected floating-point inputs, got ", x.dtype()));
    out.push_back(create_graph && x.requires_grad() ? alias(x) : x.detach().requires_grad_());
  }
  return out;
}

std::vector<Tensor> call(const char* op, const TensorFunction& f,
                         const std::vector<Tensor>& inputs) {
  const GradMode on(true);
  std::vector<Tensor> outputs = f(inputs);
  for (const Tensor& y : outputs)
    if (!is_floating(y.dtype()))
      throw DTypeError(str(op, ": expected floating-point outputs, got ", y.dtype()));
  return outputs;
}

/// Returns the gradients of the outputs, weighted; zeros where there are none.
std::vector<Tensor> pull(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& weights, bool retain, bool create_graph) {
  std::vector<Tensor> roots, seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad()) {
      roots.push_back(outputs[i]);
      seeds.push_back(i < weights.size() ? weights[i] : Tensor());
    }
  std::vector<Tensor> gradients(inputs.size());
  if (!roots.empty()) gradients = grad(roots, inputs, seeds, retain, create_graph, true);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = zeros_like(inputs[i].detach());
  return gradients;
}

void check_vectors(const char* op, const char* of, const std::vector<Tensor>& tensors,
                   const std::vector<Tensor>& vectors) {
  if (vectors.size() != tensors.size())
    throw ArgumentError(str(op, ": expected ", tensors.size(), " vectors (one for each ", of,
                            "), got ", vectors.size()));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (vectors[i].shape() != tensors[i].shape())
      throw ShapeError(str(op, ": expected a vector of shape ", tensors[i].shape(), " for ", of,
                           " ", i, ", got ", vectors[i].shape()));
    if (vectors[i].dtype() != tensors[i].dtype())
      throw DTypeError(str(op, ": expected a vector of type ", tensors[i].dtype(), " for ", of, " ",
                           i, ", got ", vectors[i].dtype()));
  }
}

std::vector<Tensor> finished(std::vector<Tensor> tensors, bool create_graph) {
  if (!create_graph)
    for (Tensor& t : tensors) t = t.detach();
  return tensors;
}

const Tensor& only_element(const char* op, const std::vector<Tensor>& outputs) {
  if (outputs.size() != 1 || outputs[0].numel() != 1)
    throw ShapeError(str(
        op, ": expected a function with one result of one element, got ",
        outputs.size() == 1 ? str("shape ", outputs[0].shape()) : str(outputs.size(), " results")));
  return outputs[0];
}

}  // namespace

void check_inputs(std::size_t expected, std::size_t got) {
  if (expected != got)
    throw ArgumentError(
        str("function: expected ", expected, " inputs, as it has parameters, got ", got));
}

Products vjp(const TensorFunction& f, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& vectors, bool create_graph) {
  const std::vector<Tensor> x = followed("vjp", inputs, create_graph);
  const std::vector<Tensor> y = call("vjp", f, x);
  if (!vectors.empty()) check_vectors("vjp", "output", y, vectors);
  else (void)only_element("vjp without a vector", y);
  std::vector<Tensor> products = pull(y, x, vectors, create_graph, create_graph);
  return {finished(y, create_graph), finished(std::move(products), create_graph)};
}

Products jvp(const TensorFunction& f, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& vectors, bool create_graph) {
  check_vectors("jvp", "input", inputs, vectors);
  const std::vector<Tensor> x = followed("jvp", inputs, create_graph);
  const std::vector<Tensor> y = call("jvp", f, x);
  // vᵀ J is linear in v, so its derivative by v along u is J u, for any v.
  std::vector<Tensor> v;
  for (const Tensor& t : y) v.push_back(zeros_like(t.detach()).requires_grad_());
  const std::vector<Tensor> gradients = pull(y, x, v, true, true);
  std::vector<Tensor> products = pull(gradients, v, vectors, create_graph, create_graph);
  return {finished(y, create_graph), finished(std::move(products), create_graph)};
}

std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f,
                                          const std::vector<Tensor>& inputs, bool create_graph) {
  const std::vector<Tensor> x = followed("jacobian", inputs, create_graph);
  std::vector<std::vector<Tensor>> all;
  for (const Tensor& y : call("jacobian", f, x)) {
    std::vector<std::vector<Tensor>> rows(x.size());
    for (std::int64_t k = 0; k < y.numel(); ++k) {
      const Tensor unit = zeros_like(y.detach());
      unit.view({-1})[k].fill_(1);
      const std::vector<Tensor> row = pull({y}, x, {unit}, true, create_graph);
      for (std::size_t i = 0; i < x.size(); ++i) rows[i].push_back(row[i]);
    }
    std::vector<Tensor> matrices;
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<std::int64_t> sizes(y.shape().begin(), y.shape().end());
      sizes.insert(sizes.end(), x[i].shape().begin(), x[i].shape().end());
      const Shape shape{std::span<const std::int64_t>(sizes)};
      matrices.push_back(rows[i].empty()
                             ? zeros(shape, {.device = x[i].device(), .dtype = x[i].dtype()})
                             : stack(rows[i]).reshape(shape));
    }
    all.push_back(finished(std::move(matrices), create_graph));
  }
  return all;
}

std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                         bool create_graph) {
  const TensorFunction gradient = [&f](const std::vector<Tensor>& x) {
    const std::vector<Tensor> y = call("hessian", f, x);
    (void)only_element("hessian", y);
    return pull(y, x, {}, true, true);
  };
  return jacobian(gradient, inputs, create_graph);
}

Products hvp(const TensorFunction& f, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& vectors, bool create_graph) {
  check_vectors("hvp", "input", inputs, vectors);
  const std::vector<Tensor> x = followed("hvp", inputs, create_graph);
  const std::vector<Tensor> y = call("hvp", f, x);
  (void)only_element("hvp", y);
  const std::vector<Tensor> gradients = pull(y, x, {}, true, true);
  std::vector<Tensor> products = pull(gradients, x, vectors, create_graph, create_graph);
  return {finished(y, create_graph), finished(std::move(products), create_graph)};
}

}  // namespace braid::detail
