// backward() and grad(): they check their arguments and set the gradients of the outputs.
#include <atomic>

#include <braid/core/ops/create.hpp>

#include "backward_engine.hpp"

namespace braid {

namespace {

void fill_seeds(std::vector<Tensor>& seeds, const char* op, std::span<const Tensor> outputs,
                std::span<const Tensor> gradients) {
  if (!gradients.empty() && gradients.size() != outputs.size())
    throw ArgumentError(
        str(op, ": expected ", outputs.size(), " gradients, got ", gradients.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad())
      throw AutogradError(str(op,
                              ": expected an output that requires a gradient, got one of shape ",
                              y.shape(), " without history"));
    if (gradients.empty() || !gradients[i].defined()) {
      if (y.numel() != 1)
        throw AutogradError(str(op, ": expected a gradient for an output of shape ", y.shape(),
                                " (only one-element outputs have a default), got none"));
      seeds.push_back(ones_like(y));
      continue;
    }
    const Tensor& g = gradients[i];
    if (g.shape() != y.shape())
      throw ShapeError(str(op, ": expected a gradient of shape ", y.shape(), ", got ", g.shape()));
    if (g.dtype() != y.dtype())
      throw DTypeError(str(op, ": expected a gradient of type ", y.dtype(), ", got ", g.dtype()));
    if (g.device() != y.device())
      throw DeviceError(
          str(op, ": expected a gradient on ", y.device(), ", got one on ", g.device()));
    seeds.push_back(g);
  }
}

}  // namespace

void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients, bool retain_graph,
              bool create_graph) {
  if (static std::atomic<bool> warned{false}; create_graph && !warned.exchange(true))
    warn(
        "backward with create_graph = true makes a cycle: a leaf's grad() holds the graph, and the "
        "graph the leaf. Neither is freed until set_grad({}) removes "
        "that gradient; grad(outputs, inputs, …) makes no cycle");
  autograd::Engine engine(retain_graph || create_graph, create_graph);
  fill_seeds(engine.seeds(), "backward", outputs, gradients);
  engine.run(outputs, {});
  engine.commit_leaves();
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  (void)detail::defined(impl_);
  braid::backward({this, 1}, {&gradient, 1}, retain_graph, create_graph);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> gradients, bool retain_graph, bool create_graph,
                         bool allow_unused) {
  if (inputs.empty()) throw ArgumentError("grad: expected inputs, got none");
  for (const Tensor& x : inputs)
    if (!x.requires_grad())
      throw AutogradError(str("grad: expected inputs that require a gradient, got one of shape ",
                              x.shape(), " that does not"));
  autograd::Engine engine(retain_graph || create_graph, create_graph);
  fill_seeds(engine.seeds(), "grad", outputs, gradients);
  engine.run(outputs, inputs);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor g;
    for (std::size_t j = 0; j < i && !g.defined(); ++j)
      if (inputs[j].id() == inputs[i].id()) g = results[j];
    if (!g.defined()) g = engine.captured(i);
    if (!g.defined() && !allow_unused)
      throw AutogradError(
          str("grad: expected outputs that depend on every input, got an unused input of shape ",
              inputs[i].shape(), " (index ", i, ")"));
    results.push_back(std::move(g));
  }
  return results;
}

std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> inputs,
                         bool retain_graph, bool create_graph) {
  return grad({&output, 1}, {inputs.begin(), inputs.size()}, {}, retain_graph, create_graph);
}

}  // namespace braid
