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

/// The gradients of f(the operands but the last), whose incoming gradient is the last operand. `of`
/// is the operand of Gradients::one.
template <class F> Work gradients_of(const Sets& sets, Gradients which, F f, std::size_t of = 0) {
  struct Graph {
    std::vector<braid::Tensor> wanted;
    braid::Tensor y, dy;
  };
  auto graphs = std::make_shared<std::vector<Graph>>();
  for (const auto& t : sets) {
    Graph g;
    std::vector<braid::Tensor> inputs;
    for (std::size_t i = 0; i + 1 < t.size(); ++i) {
      braid::Tensor x = t[i].detach();  // a leaf of its own, whose strides are the operand's
      if (which != Gradients::one || i == of) g.wanted.push_back(x.requires_grad_());
      inputs.push_back(std::move(x));
    }
    g.y = f(inputs);
    g.dy = t.back();
    graphs->push_back(std::move(g));
  }
  Work work;
  work.once = [graphs, which](std::size_t s) {
    const Graph& g = (*graphs)[s];
    const std::array<braid::Tensor, 1> y = {g.y}, dy = {g.dy};
    const std::vector<braid::Tensor> grads = braid::grad(y, g.wanted, dy, true);
    if (which != Gradients::all) return grads[0];
    const braid::NoGrad guard;
    std::vector<braid::Tensor> parts;
    for (const braid::Tensor& grad : grads) parts.push_back(grad.flatten());
    return braid::cat(parts, 0);
  };
  return work;
}

}  // namespace bench::gpu
