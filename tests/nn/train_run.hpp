#pragma once
// A small training run with everything that a checkpoint stores: a model, AdamW, a loader that
// shuffles, and random numbers drawn in each step.
#include <braid/braid.hpp>

namespace braid::test {

struct Clusters {
  std::int64_t n = 50;
  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] data::Labelled get(std::int64_t i) const {
    std::vector<float> image;
    for (std::int64_t k = 0; k < 4; ++k)
      image.push_back(static_cast<float>((i * 7 + k * 3) % 11) / 11.0f +
                      (i % 3 == k ? 1.0f : 0.0f));
    return {tensor(image), full({}, static_cast<double>(i % 3), {.dtype = DType::int64})};
  }
};

struct SmallNet : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 3};
  nn::Dropout dropout{0.25};
  Tensor operator()(const Tensor& x) const { return fc2(dropout(relu(fc1(x)))); }
  BRAID_FIELDS(fc1, fc2, dropout)
};

struct Run {
  explicit Run(std::uint64_t seed = 3) : start(seed) {}

  struct Start {
    explicit Start(std::uint64_t seed) { manual_seed(seed); }
  } start;
  SmallNet model;
  optim::AdamW optimizer{parameters(model), {.lr = 0.01}};
  data::DataLoader<Clusters> loader{Clusters{}, {.batch_size = 8, .shuffle = true}};

  /// Takes one step, with dropout and with noise from the global random state.
  void step(const data::Labelled& batch) {
    const Tensor loss =
        nn::cross_entropy(model(batch.image + 0.1 * randn(batch.image.shape())), batch.label);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    optimizer.set_lr(optimizer.lr() * 0.99);
  }
  /// Returns a hash of the model, the optimizer, the random state and the learning rate.
  [[nodiscard]] std::size_t bits() const {
    std::string text;
    const auto add = [&](const StateDict& dict) {
      for (const auto& [name, tensor] : dict) {
        text += name;
        text.append(static_cast<const char*>(tensor.impl()->data()),
                    static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype()));
      }
    };
    add(state_dict(model));
    add(state_dict(optimizer));
    const RandomState random = random_state();
    const double lr = optimizer.lr();
    text.append(reinterpret_cast<const char*>(&random), sizeof random)
        .append(reinterpret_cast<const char*>(&lr), sizeof lr);
    return std::hash<std::string>()(text);
  }
};

}  // namespace braid::test
