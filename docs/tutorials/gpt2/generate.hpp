#pragma once
// Continues a sequence of tokens.
#include <algorithm>
#include <optional>

#include "model.hpp"

namespace gpt2 {

struct GenerateOptions {
  std::int64_t length = 100;  ///< tokens to add
  double temperature = 0.8;   ///< 0: always the most probable token
  std::int64_t top_k = 40;    ///< one of the so many most probable tokens
  /// Tokens that the tokenizer does not have are never chosen; the model may have more.
  std::int64_t vocabulary = std::int64_t{1} << 40;
  std::optional<std::int64_t> end = {};  ///< the token after which it stops
};

/// Returns the next token [1, 1], given the logits of the last one [1, vocabulary].
inline Tensor next_token(const Tensor& logits, const GenerateOptions& o) {
  const Tensor known = logits.narrow(1, 0, std::min(o.vocabulary, logits.size(1)));
  if (o.temperature <= 0) return known.argmax(1, true);
  const auto [best, which] =
      topk(known.to(DType::float32) / o.temperature, std::min(o.top_k, known.size(1)));
  return gather(which, 1, multinomial(softmax(best), 1));
}

/// Returns the tokens that follow `prompt`, int64 [n] with n >= 1. Each is computed from the keys
/// and values of those before it. When there are no more positions, the model goes on with the
/// later half of what it has seen.
///
/// Throws    ArgumentError for an empty prompt
inline Tensor generate(const GPT2& model, const Tensor& prompt, const GenerateOptions& o) {
  if (prompt.dim() != 1 || prompt.numel() == 0)
    throw ArgumentError(str("gpt2: expected a prompt of one token or more, got ", prompt.shape()));
  const NoGrad guard;
  const std::int64_t most = model.config.positions;
  Tensor all = prompt.unsqueeze(0).to(model.wte.weight.device());
  Tensor fresh =
      all.narrow(1, std::max<std::int64_t>(0, all.size(1) - most), std::min(most, all.size(1)));
  Cache cache;
  for (std::int64_t i = 0; i < o.length; ++i) {
    if (cache.tokens() + fresh.size(1) > most) {
      cache = {};
      const std::int64_t kept = std::max<std::int64_t>(1, most / 2);
      fresh = all.narrow(1, all.size(1) - kept, kept);
    }
    fresh = next_token(model(fresh, cache).select(1, -1), o);
    all = cat({all, fresh}, 1);
    if (o.end && fresh.item<std::int64_t>() == *o.end) break;
  }
  return all[0].narrow(0, prompt.numel(), all.size(1) - prompt.numel());
}

}  // namespace gpt2
