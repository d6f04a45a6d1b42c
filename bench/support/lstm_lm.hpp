#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <braid/braid.hpp>

#include "support/rows.hpp"

// The word language model row: 2 LSTM layers of width 200 over 35 words × 20 texts, a vocabulary of
// 10,000 words, gradients clipped to a norm of 0.25, SGD.
namespace bench {

struct LstmLmSizes {
  std::int64_t words = 10000, width = 200, layers = 2, steps = 35, batch = 20;
};
constexpr double kClip = 0.25;

struct LstmLm : braid::nn::Module {
  braid::nn::Embedding encoder;
  braid::nn::LSTM rnn;
  braid::nn::Linear decoder;
  explicit LstmLm(const LstmLmSizes& s)
      : encoder(s.words, s.width),
        rnn(s.width, s.width, {.num_layers = s.layers}),
        decoder(s.width, s.words) {}
  braid::Tensor operator()(const braid::Tensor& words) const {
    return decoder(rnn(encoder(words)).output.flatten(0, 1));
  }
  BRAID_FIELDS(encoder, rnn, decoder)
};

class LstmLmRow {
 public:
  explicit LstmLmRow(const LstmLmSizes& s = {})
      : model_(s),
        words_(braid::tensor(
                   labels(s.steps * s.batch, static_cast<std::uint32_t>(s.words), kInputSeed))
                   .reshape({s.steps, s.batch})),
        next_(braid::tensor(
            labels(s.steps * s.batch, static_cast<std::uint32_t>(s.words), kTargetSeed))),
        parameters_(braid::parameters(model_)),
        optimizer_(parameters_, {.lr = kLearningRate}) {
    reset();
  }
  LstmLmRow(const LstmLmRow&) = delete;
  LstmLmRow& operator=(const LstmLmRow&) = delete;

  void reset() { fill(parameters_); }
  braid::Tensor step() {
    optimizer_.zero_grad();
    braid::Tensor loss = braid::nn::cross_entropy(model_(words_), next_);
    loss.backward();
    clip();
    optimizer_.step();
    return loss;
  }
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
  /// Scales the gradients by min(1, kClip / (total norm + 1e-6)).
  void clip() {
    const braid::NoGrad guard;
    double squares = 0;
    for (const braid::Tensor& p : parameters_) {
      const braid::Tensor g = p.grad().flatten();
      squares += braid::dot(g, g).item<double>();
    }
    const double factor = kClip / (std::sqrt(squares) + 1e-6);
    if (factor >= 1) return;
    for (const braid::Tensor& p : parameters_) p.grad().mul_(factor);
  }

  LstmLm model_;
  braid::Tensor words_, next_;
  std::vector<braid::Tensor> parameters_;
  braid::optim::SGD optimizer_;
};

/// Returns the losses of the first steps, computed by plain double loops.
[[nodiscard]] std::vector<double> reference_lstm_lm_losses(int steps,
                                                           const LstmLmSizes& sizes = {});

}  // namespace bench
