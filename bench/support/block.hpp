#pragma once
#include <vector>

#include <braid/braid.hpp>

#include "support/rows.hpp"

// The row block_sgd: one causal pre-norm Transformer block of width 256 with 8 heads and a
// feed-forward network of width 1024 with GELU, on 8 sequences of 128 steps.
namespace bench {

struct Block : braid::nn::Module {
  braid::nn::LayerNorm norm1{256};
  braid::nn::Linear qkv{256, 768}, out{256, 256};
  braid::nn::LayerNorm norm2{256};
  braid::nn::Linear wide{256, 1024}, narrow{1024, 256};
  braid::Tensor operator()(const braid::Tensor& x) const {
    const std::int64_t batch = x.size(0), n = x.size(1);
    const braid::Tensor heads =
        braid::packed_attention(qkv(norm1(x)).reshape({batch, n, 3, 8, 32}), {}, 0, true);
    const braid::Tensor y = x + out(heads.reshape({batch, n, 256}));
    return y + narrow(braid::gelu(wide(norm2(y))));
  }
  BRAID_FIELDS(norm1, qkv, out, norm2, wide, narrow)
};

[[nodiscard]] inline braid::Tensor sequences(std::uint64_t seed, std::int64_t count = 8) {
  return braid::tensor(uniform(count * 128 * 256, seed)).reshape({count, 128, 256});
}

/// Computes the losses in a different way: in float64, with gradients by recorded ops only
/// (create_graph), so that no fused backward is used.
[[nodiscard]] inline std::vector<double> block_reference(int steps, std::int64_t count = 8) {
  using namespace braid;
  Block model;
  fill(parameters(model));
  to(model, DType::float64);
  const Tensor x = sequences(kInputSeed, count).to(DType::float64),
               target = sequences(kTargetSeed, count).to(DType::float64);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = square(model(x) - target).mean();
    losses.push_back(loss.item<double>());
    const std::vector<Tensor> list = parameters(model);
    const std::vector<Tensor> gradients = grad(std::span(&loss, 1), list, {}, false, true);
    const NoGrad guard;
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i].sub_(gradients[i].detach(), kLearningRate);
  }
  return losses;
}

}  // namespace bench
