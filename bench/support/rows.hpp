#pragma once
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "support/formula.hpp"

// Braid's version of the benchmark rows, written as a user would write it. peers/rows.py and
// peers/peer.cpp have the same rows in PyTorch.
namespace bench {

/// Fills every parameter with weights from the common formula.
inline void fill(const std::vector<braid::Tensor>& parameters) {
  braid::NoGrad guard;
  std::int64_t fan_in = 1;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const braid::Tensor& p = parameters[k];
    if (p.dim() >= 2) fan_in = p.numel() / p.size(0);  // a bias follows its weight
    p.copy_(braid::tensor(weights(p.numel(), k, fan_in)).reshape(p.shape()));
  }
}

[[nodiscard]] inline braid::Tensor input(std::int64_t rows, std::int64_t width) {
  return braid::tensor(uniform(rows * width, kInputSeed)).reshape({rows, width});
}
[[nodiscard]] inline braid::Tensor target(std::int64_t rows, std::int64_t width) {
  return braid::tensor(uniform(rows * width, kTargetSeed)).reshape({rows, width});
}
[[nodiscard]] inline braid::Tensor classes(std::int64_t rows, std::uint32_t count) {
  return braid::tensor(labels(rows, count, kTargetSeed));
}

/// 784 -> hidden -> hidden -> 10 with ReLU.
[[nodiscard]] inline auto make_mlp(std::int64_t hidden) {
  using namespace braid;
  return nn::Sequential{nn::Linear(784, hidden), nn::ReLU(), nn::Linear(hidden, hidden), nn::ReLU(),
                        nn::Linear(hidden, 10)};
}

/// Two convolutions with ReLU and max pooling, then two linear layers, over 28×28 images.
struct Cnn : braid::nn::Module {
  braid::nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  braid::nn::Linear fc1{1600, 128}, fc2{128, 10};
  braid::Tensor operator()(const braid::Tensor& images) const {
    braid::Tensor h = max_pool2d(relu(conv1(images)), 2);
    h = max_pool2d(relu(conv2(h)), 2);
    return fc2(relu(fc1(h.flatten(1))));
  }
  BRAID_FIELDS(conv1, conv2, fc1, fc2)
};
[[nodiscard]] inline braid::Tensor images(std::int64_t rows) {
  return input(rows, 28 * 28).reshape({rows, 1, 28, 28});
}

/// A model, its batch and its optimizer. The learning rate is 0.01, for Adam 0.001.
template <class Model, class Loss, class Optimizer = braid::optim::SGD> class Row {
 public:
  Row(Model model, braid::Tensor x, braid::Tensor y, Loss loss)
      : model_(std::move(model)), x_(std::move(x)), y_(std::move(y)), loss_(loss) {
    reset();
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  /// Resets the model to the common weights and creates an optimizer without state.
  void reset() {
    fill(braid::parameters(model_));
    if constexpr (std::is_same_v<Optimizer, braid::optim::SGD>)
      optimizer_.emplace(braid::parameters(model_), braid::optim::SgdOptions{.lr = kLearningRate});
    else optimizer_.emplace(braid::parameters(model_));
  }
  /// Runs one training step and returns its loss.
  braid::Tensor step() {
    optimizer_->zero_grad();
    braid::Tensor loss = loss_(model_(x_), y_);
    loss.backward();
    optimizer_->step();
    return loss;
  }
  /// Returns the losses of the first `count` steps, starting from the common weights.
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
  std::optional<Optimizer> optimizer_;
};

constexpr auto kMse = [](const braid::Tensor& a, const braid::Tensor& b) {
  return braid::nn::mse_loss(a, b);
};
constexpr auto kCrossEntropy = [](const braid::Tensor& a, const braid::Tensor& b) {
  return braid::nn::cross_entropy(a, b);
};

}  // namespace bench
