#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

namespace braid::nn {

/// The options of Embedding.
struct EmbeddingOptions {
  /// A row that starts at 0 and receives no gradient. A negative index counts from the end.
  std::optional<std::int64_t> padding_idx = {};
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// A lookup table of num_embeddings rows of embedding_dim numbers.
///
/// Shapes    indices [..] int64 → [.., embedding_dim]; weight [num_embeddings, embedding_dim]
/// Starts    standard normal, as in PyTorch
/// Throws    ArgumentError if a size is negative; IndexError if padding_idx is outside
///           [-num_embeddings, num_embeddings). A call throws IndexError, DTypeError or
///           DeviceError, as braid::embedding
///
///     const nn::Embedding words(10000, 200, {.padding_idx = 0});
///     words(tensor({{5, 2, 0}}));  // [1, 3, 200]
struct Embedding : Module {
  Parameter weight;
  std::int64_t num_embeddings, embedding_dim;
  std::optional<std::int64_t> padding_idx;  ///< never negative: counted from the front

  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
            const EmbeddingOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& indices))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight)
};

}  // namespace braid::nn
