#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "support/formula.hpp"

// Braid's side of the rows, written as a user writes it. peers/rows.py and peers/peer.cpp are its twins.
namespace bench {

/// Gives every parameter its weights by the common formula.
inline void fill(const std::vector<braid::Tensor>& parameters) {
  braid::NoGrad guard;
  std::int64_t fan_in = 1;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const braid::Tensor& p = parameters[k];
    if (p.dim() == 2) fan_in = p.size(1);  // a bias follows its weight
    p.copy_(braid::tensor(weights(p.numel(), k, fan_in)).reshape(p.shape()));
  }
}

[[nodiscard]] inline braid::Tensor input(std::int64_t rows, std::int64_t width) {
  return braid::tensor(uniform(rows * width, kInputSeed)).reshape({rows, width});
}
[[nodiscard]] inline braid::Tensor target(std::int64_t rows, std::int64_t width) {
  return braid::tensor(uniform(rows * width, kTargetSeed)).reshape({rows, width});
}
[[nodiscard]] inline braid::Tensor classes(std::int64_t rows, std::uint32_t count) { return braid::tensor(labels(rows, count, kTargetSeed)); }

/// 784 -> hidden -> hidden -> 10 with ReLU.
[[nodiscard]] inline auto make_mlp(std::int64_t hidden) {
  using namespace braid;
  return nn::Sequential{nn::Linear(784, hidden), nn::ReLU(), nn::Linear(hidden, hidden), nn::ReLU(), nn::Linear(hidden, 10)};
}

/// A model, its batch and its optimizer.
template <class Model, class Loss>
class Row {
 public:
  Row(Model model, braid::Tensor x, braid::Tensor y, Loss loss)
      : model_(std::move(model)), x_(std::move(x)), y_(std::move(y)), loss_(loss), optimizer_(braid::parameters(model_), {.lr = kLearningRate}) {
    reset();
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  void reset() { fill(braid::parameters(model_)); }
  /// One training step; its loss.
  braid::Tensor step() {
    optimizer_.zero_grad();
    braid::Tensor loss = loss_(model_(x_), y_);
    loss.backward();
    optimizer_.step();
    return loss;
  }
  /// The losses of the first `count` steps from the common weights.
  [[nodiscard]] std::vector<double> losses(int count) {
    reset();
    std::vector<double> values;
    for (int i = 0; i < count; ++i) {
      const braid::Tensor loss = step();
      values.push_back(loss.item<double>());
    }
    return values;
  }

 private:
  Model model_;
  braid::Tensor x_, y_;
  Loss loss_;
  braid::optim::SGD optimizer_;
};

constexpr auto kMse = [](const braid::Tensor& a, const braid::Tensor& b) { return braid::nn::mse_loss(a, b); };
constexpr auto kCrossEntropy = [](const braid::Tensor& a, const braid::Tensor& b) { return braid::nn::cross_entropy(a, b); };

}  // namespace bench
