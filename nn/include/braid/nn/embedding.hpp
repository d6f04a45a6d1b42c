#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

namespace braid::nn {

struct EmbeddingOptions {
  /// A row that starts at 0 and receives no gradient. A negative index counts from the end.
  std::optional<std::int64_t> padding_idx = {};
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// A lookup table of `count` rows of `width` numbers.
///
/// Shapes    indices [..] int64 → [.., width]; weight [count, width]
/// Starts    standard normal, as in PyTorch
/// Throws    ArgumentError if a size is negative; IndexError if padding_idx is outside [-count,
///           count). A call throws IndexError, DTypeError or DeviceError, as braid::embedding
struct Embedding : Module {
  Parameter weight;
  std::optional<std::int64_t> padding_idx;  ///< never negative: counted from the front

  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& indices) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight)
};

}  // namespace braid::nn
