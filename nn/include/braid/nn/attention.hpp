#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <braid/nn/linear.hpp>
#include <braid/nn/module.hpp>

namespace braid::nn {

/// The options of MultiheadAttention.
struct MultiheadAttentionOptions {
  double dropout = 0;  ///< applied to the attention probabilities, in training only
  bool bias = true;
  bool batch_first = false;  ///< [batch, n, embed] instead of [n, batch, embed]
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// Optional arguments of a MultiheadAttention call. A mask hides a key where it is true, as in
/// PyTorch's nn.MultiheadAttention. (scaled_dot_product_attention, in PyTorch and here, has the
/// opposite meaning: true lets a key take part.)
struct AttentionCall {
  Tensor key_padding_mask = {};  ///< bool [batch, keys]: true hides a key from all queries
  /// [queries, keys] or [batch * heads, queries, keys]. Either bool, where true hides a key, or of
  /// x's dtype, in which case it is added to the scores.
  Tensor attn_mask = {};
  /// Query i attends to keys 0 … i only, in addition to the masks. PyTorch requires that mask as
  /// attn_mask too; here it is not needed.
  bool is_causal = false;
};

/// Multi-head attention: softmax(q kᵀ / √width) v in each of `num_heads` heads. The inputs are
/// first projected to q, k and v (in_proj_weight [3 embed, embed], one product if all three are the
/// same tensor); the result is projected by out_proj.
///
/// Shapes    query [queries, batch, embed], key and value [keys, batch, embed] → [queries, batch,
///           embed]. With batch_first the batch comes first. Without a batch: query [queries,
///           embed], key and value [keys, embed]
/// Returns   the output. with_weights returns the output and the probabilities [batch, queries,
///           keys], averaged over the heads; it keeps the scores in memory. (PyTorch's call returns
///           both by default: need_weights.)
/// Starts    in_proj_weight Xavier uniform, biases 0, out_proj.weight as in Linear
/// Throws    ArgumentError unless num_heads divides embed_dim and 0 <= dropout <= 1. A call throws
///           ShapeError, DTypeError or DeviceError
/// Source    Vaswani et al. 2017, arXiv:1706.03762
///
///     const nn::MultiheadAttention attention(64, 8, {.batch_first = true});
///     const Tensor t = randn({2, 100, 64});
///     attention(t, t, t, {.is_causal = true});  // [2, 100, 64]
struct MultiheadAttention : Module {
  std::int64_t embed_dim, num_heads;
  double dropout;
  bool batch_first;
  Parameter in_proj_weight, in_proj_bias;
  Linear out_proj;

  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionCall& call = {}))
  /// See Returns above.
  [[nodiscard]] std::pair<Tensor, Tensor> with_weights(const Tensor& query, const Tensor& key,
                                                       const Tensor& value,
                                                       const AttentionCall& call = {}) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(in_proj_weight, in_proj_bias, out_proj)
};

}  // namespace braid::nn
