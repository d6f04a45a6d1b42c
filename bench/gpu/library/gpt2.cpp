// The training step of docs/tutorials/gpt2.cpp: products in bfloat16, float32 weights, AdamW.
#include "gpt2/training.hpp"
#include "library/abi.hpp"

namespace bench::gpu {

using braid::Tensor;

/// Takes the matrices, one after the other as the model lists them, in one tensor [n]; then tokens
/// and the tokens after them, both [batch * context]. The result of a run is its loss.
Work gpt2_step(const std::vector<Tensor>& operands, const std::string& config,
               std::int64_t context) {
  gpt2::GPT2 model(gpt2::config_of(config));
  braid::to(model, device());
  {
    const braid::NoGrad guard;
    std::int64_t at = 0;
    for (const Tensor& p : braid::parameters(model)) {
      if (p.dim() < 2) continue;
      p.copy_(operands[0].narrow(0, at, p.numel()).reshape(p.shape()));
      at += p.numel();
    }
    if (at != operands[0].numel())
      throw braid::ArgumentError(
          braid::str("gpt2_step: expected ", at, " weights, got ", operands[0].numel()));
  }
  const braid::data::NextToken batch{operands[1].reshape({-1, context}),
                                     operands[2].reshape({-1, context})};
  const gpt2::TrainerOptions options{.steps = std::int64_t{1} << 40, .autocast = true};
  auto trainer = std::make_shared<gpt2::Trainer>(std::move(model), options,
                                                 std::vector<braid::Device>{device()});
  Work work;
  work.once = [trainer, batch](std::size_t) { return trainer->step(batch); };
  return work;
}

}  // namespace bench::gpu
