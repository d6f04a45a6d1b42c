#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

namespace braid::nn {

struct EmbeddingOptions {
  /// a row that starts at 0 and gets no gradient; negative: counted from the end
  std::optional<std::int64_t> padding_idx = {};
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// A table of `count` rows of `width` numbers, looked up by index.
///
/// Shapes    indices [..] int64 → [.., width]; weight [count, width]
/// Starts    standard normal, as PyTorch's
/// Throws    ArgumentError for a negative size, IndexError for a padding_idx outside [-count,
///           count); in a call IndexError, DTypeError, DeviceError as braid::embedding
struct Embedding : Module {
  Parameter weight;
  std::optional<std::int64_t> padding_idx;  ///< counted from the front

  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& indices) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight)
};

}  // namespace braid::nn
