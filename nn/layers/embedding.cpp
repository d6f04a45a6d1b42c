#include <braid/core/error.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/embedding.hpp>

namespace braid::nn {

Embedding::Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options) {
  if (count < 0) throw ArgumentError(str("Embedding: expected count >= 0, got ", count));
  if (width < 0) throw ArgumentError(str("Embedding: expected width >= 0, got ", width));
  weight = Parameter(randn({count, width}, {.device = options.device, .dtype = options.dtype}));
}

Tensor Embedding::operator()(const Tensor& indices) const { return embedding(weight, indices); }

std::string Embedding::extra() const {
  if (!weight.defined()) return "moved from";
  return str(weight.size(0), ", ", weight.size(1));
}

}  // namespace braid::nn
