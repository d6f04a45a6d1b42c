#pragma once
// How works of single ops are made, and the tables of all works.
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "library/abi.hpp"

namespace bench::gpu {

/// The operands of a work, one list for each set.
using Sets = std::vector<std::vector<braid::Tensor>>;

struct Entry {
  const char* kind;
  std::size_t operands;
  Work (*make)(const Sets&);
};

/// Layers and their gradients: products with a bias, attention, norms, convolutions.
[[nodiscard]] std::span<const Entry> layer_entries();

/// f(operands of the set), without recording.
template <class F> Work forward(const Sets& sets, F f) {
  Work work;
  work.fresh = true;
  work.once = [sets, f](std::size_t s) {
    const braid::NoGrad guard;
    return f(sets[s]);
  };
  return work;
}

/// Which gradients a work computes, and what its result is.
enum class Gradients {
  first,  ///< those of all operands; the result is that of the first
  all,    ///< of all operands; the result is all of them, flattened and concatenated
  one,    ///< of one operand alone
};

/// The recorded f(the operands but the last), whose incoming gradient is the last operand.
struct Graph {
  std::vector<braid::Tensor> wanted;  ///< the operands whose gradients are computed
  braid::Tensor y, dy;
  [[nodiscard]] std::vector<braid::Tensor> gradients(const braid::Tensor& incoming) const {
    const std::array<braid::Tensor, 1> from = {y}, with = {incoming};
    return braid::grad(from, wanted, with, true);
  }
};

/// The graph of a set. `of` is the operand of Gradients::one.
template <class F>
Graph graph_of(const std::vector<braid::Tensor>& t, Gradients which, F f, std::size_t of = 0) {
  Graph g;
  std::vector<braid::Tensor> inputs;
  for (std::size_t i = 0; i + 1 < t.size(); ++i) {
    braid::Tensor x = t[i].detach();  // a leaf of its own, whose strides are the operand's
    if (which != Gradients::one || i == of) g.wanted.push_back(x.requires_grad_());
    inputs.push_back(std::move(x));
  }
  g.y = f(inputs);
  g.dy = t.back();
  return g;
}

/// What a work returns of its gradients.
inline braid::Tensor result_of(const std::vector<braid::Tensor>& gradients, Gradients which) {
  if (which != Gradients::all) return gradients[0];
  const braid::NoGrad guard;
  std::vector<braid::Tensor> parts;
  for (const braid::Tensor& g : gradients) parts.push_back(g.flatten());
  return braid::cat(parts, 0);
}

/// The gradients of f(the operands but the last).
template <class F> Work gradients_of(const Sets& sets, Gradients which, F f, std::size_t of = 0) {
  auto graphs = std::make_shared<std::vector<Graph>>();
  for (const auto& t : sets) graphs->push_back(graph_of(t, which, f, of));
  Work work;
  work.once = [graphs, which](std::size_t s) {
    const Graph& g = (*graphs)[s];
    return result_of(g.gradients(g.dy), which);
  };
  return work;
}

/// The same for one set, captured as a step whose batch is the incoming gradient. The gradients
/// stay in the memory of the recorded step, as those of PyTorch's graph do.
template <class F> Work captured_gradients_of(const Sets& sets, Gradients which, F f) {
  auto found = std::make_shared<std::vector<braid::Tensor>>();
  auto step = [graph = graph_of(sets[0], which, f), found](const braid::Tensor& dy) {
    *found = graph.gradients(dy);
  };
  Work work;
  work.once = [captured = std::make_shared<braid::training::CapturedStep<decltype(step)>>(
                   braid::training::captured_step(std::move(step))),
               found, which, dy = sets[0].back()](std::size_t) {
    (*captured)(dy);
    return result_of(*found, which);
  };
  return work;
}

}  // namespace bench::gpu
