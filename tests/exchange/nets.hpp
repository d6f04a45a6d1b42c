#pragma once
// The nets of goldens/make_exchange.py. Their fields have the names of PyTorch's attributes, so
// that state dicts are interchangeable.
#include <braid/braid.hpp>

namespace braid::test::exchange {

/// Convolutions, BatchNorm for images and for rows; AdamW.
struct Cnn : nn::Module {
  nn::Conv2d conv1{1, 8, 3, {.bias = false}};
  nn::BatchNorm2d norm1{8};
  nn::Conv2d conv2{8, 12, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm2{12, {.eps = 1e-3, .momentum = 0.2}};
  nn::Linear fc1{12 * 5 * 5, 16, {.bias = false}};
  nn::BatchNorm1d norm3{16};
  nn::Linear fc2{16, 10};

  Tensor operator()(const Tensor& images) const {
    Tensor h = max_pool2d(relu(norm1(conv1(images))), 2);
    h = relu(norm2(conv2(h))).flatten(1);
    return fc2(relu(norm3(fc1(h))));
  }
  [[nodiscard]] auto optimizer() const { return optim::AdamW(parameters(*this), {.lr = 2e-3}); }
  void before_step() const {}
  BRAID_FIELDS(conv1, norm1, conv2, norm2, fc1, norm3, fc2)
};

/// Two bidirectional LSTM layers; Adam, gradients clipped to a norm of 0.25.
struct Tagger : nn::Module {
  nn::Embedding embed{20, 12};
  nn::LSTM rnn{12, 16, {.num_layers = 2, .bidirectional = true}};
  nn::Linear out{32, 5};

  Tensor operator()(const Tensor& words) const { return out(rnn(embed(words)).output); }
  [[nodiscard]] auto optimizer() const { return optim::Adam(parameters(*this), {.lr = 5e-3}); }
  void before_step() const { optim::clip_grad_norm_(parameters(*this), 0.25); }
  BRAID_FIELDS(embed, rnn, out)
};

/// PyTorch's nn.Transformer.
struct Transformer : nn::Module {
  static constexpr nn::TransformerOptions kOptions{.dim_feedforward = 32,
                                                   .dropout = 0,
                                                   .activation = nn::TransformerActivation::gelu,
                                                   .batch_first = true,
                                                   .norm_first = true};
  nn::TransformerEncoder encoder{nn::TransformerEncoderLayer(16, 2, kOptions), 2,
                                 nn::LayerNorm(16)};
  nn::TransformerDecoder decoder{nn::TransformerDecoderLayer(16, 2, kOptions), 2,
                                 nn::LayerNorm(16)};

  Tensor operator()(const Tensor& source, const Tensor& target) const {
    return decoder(target, encoder(source), {.is_causal = true});
  }
  BRAID_FIELDS(encoder, decoder)
};

/// A Transformer with encoder and decoder; SGD with momentum.
struct Translator : nn::Module {
  nn::Embedding embed{12, 16};
  nn::Parameter position{0.1 * randn({8, 16})};
  Transformer transformer;
  nn::Linear out{16, 12};

  /// pair [batch, 2, 8]: the source, and the target with a start token in front.
  Tensor operator()(const Tensor& pair) const {
    return out(
        transformer(embed(pair.select(1, 0)) + position, embed(pair.select(1, 1)) + position));
  }
  [[nodiscard]] auto optimizer() const {
    return optim::SGD(parameters(*this), {.lr = 0.3, .momentum = 0.9, .weight_decay = 1e-4});
  }
  void before_step() const {}
  BRAID_FIELDS(embed, position, transformer, out)
};

/// Takes one step for each batch, and returns the losses. x [steps, ..], y [steps, ..].
template <class Net> std::vector<double> train_on(Net& net, const Tensor& x, const Tensor& y) {
  train(net);
  auto optimizer = net.optimizer();
  std::vector<double> losses;
  for (std::int64_t step = 0; step < x.size(0); ++step) {
    const Tensor loss = nn::cross_entropy(net(x[step]).flatten(0, -2), y[step].flatten());
    optimizer.zero_grad();
    loss.backward();
    net.before_step();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

}  // namespace braid::test::exchange
