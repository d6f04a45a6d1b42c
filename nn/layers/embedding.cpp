#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/embedding.hpp>

#include "layers/call.hpp"

namespace braid::nn {

Embedding::Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options)
    : num_embeddings(count), embedding_dim(width) {
  if (count < 0) throw ArgumentError(str("Embedding: expected num_embeddings >= 0, got ", count));
  if (width < 0) throw ArgumentError(str("Embedding: expected embedding_dim >= 0, got ", width));
  if (options.padding_idx && (*options.padding_idx < -count || *options.padding_idx >= count))
    throw IndexError(str("Embedding: expected padding_idx in [", -count, ", ", count, "), got ",
                         *options.padding_idx));
  weight = Parameter(randn({count, width}, {.device = options.device, .dtype = options.dtype}));
  if (!options.padding_idx) return;
  padding_idx = *options.padding_idx < 0 ? *options.padding_idx + count : *options.padding_idx;
  const NoGrad guard;
  weight[*padding_idx].zero_();
}

Tensor Embedding::forward(const Tensor& indices) const {
  return embedding(weight, indices, padding_idx);
}
BRAID_LAYER_CALL(Tensor, Embedding, (const Tensor& indices), (indices))

std::string Embedding::extra() const {
  if (!weight.defined()) return "moved from";
  return str(weight.size(0), ", ", weight.size(1)) +
         (padding_idx ? str(", padding_idx=", *padding_idx) : std::string());
}

BRAID_FIELDS_DEFINED(Embedding, weight)

}  // namespace braid::nn
