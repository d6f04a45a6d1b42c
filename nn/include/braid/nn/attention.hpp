#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <braid/nn/linear.hpp>
#include <braid/nn/module.hpp>

namespace braid::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the probabilities, in training
  bool bias = true;
  bool batch_first = false;  ///< [batch, n, embed] instead of [n, batch, embed]
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// What a call of MultiheadAttention can be told. Masks hide where they are true, as in PyTorch's
/// layer (its scaled_dot_product_attention, and ours, show there).
struct AttentionCall {
  Tensor key_padding_mask = {};  ///< bool [batch, keys]: true hides a key from all
  /// [queries, keys] or [batch * heads, queries, keys]: bool, true hides; or of x's dtype, added to
  /// the scores
  Tensor attn_mask = {};
  /// query i sees keys 0 … i, beside the masks; PyTorch wants that mask as attn_mask too
  bool is_causal = false;
};

/// softmax(q kᵀ / √width) v in `num_heads` heads, between a projection in (all three as one
/// product, in_proj_weight [3 embed, embed]) and one out.
///
/// Shapes    query [queries, batch, embed], key and value [keys, batch, embed] → [queries, batch,
///           embed]; batch first if so told; without batch too
/// Returns   the output alone; with_weights also the probabilities [batch, queries, keys], the mean
///           of the heads (PyTorch's call returns both, and need_weights is its default; there the
///           scores are in memory)
/// Starts    in_proj_weight Xavier uniform, biases 0, out_proj.weight as Linear's
/// Throws    ArgumentError unless num_heads divides embed_dim, and for a dropout outside [0, 1]; in
///           a call ShapeError, DTypeError, DeviceError
/// Source    Vaswani et al. 2017, arXiv:1706.03762
struct MultiheadAttention : Module {
  std::int64_t embed_dim, num_heads;
  double dropout;
  bool batch_first;
  Parameter in_proj_weight, in_proj_bias;
  Linear out_proj;

  MultiheadAttention(std::int64_t embed, std::int64_t heads,
                     const MultiheadAttentionOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionCall& call = {}) const;
  [[nodiscard]] std::pair<Tensor, Tensor> with_weights(const Tensor& query, const Tensor& key,
                                                       const Tensor& value,
                                                       const AttentionCall& call = {}) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(in_proj_weight, in_proj_bias, out_proj)
};

}  // namespace braid::nn
