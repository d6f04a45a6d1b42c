#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

namespace braid {

/// softmax(scale q kᵀ + mask) v, in one pass over tiles of keys; the matrix of scores is never in
/// memory.
///
/// Shapes    q [.., queries, width], k [.., keys, width], v [.., keys, value_width] → [.., queries,
///           value_width]; the leading dims broadcast
/// Types     floating point, one dtype; float16 and bfloat16 compute in float32
/// mask      undefined, or broadcastable to [.., queries, keys]: bool, false hides a key; or of q's
/// dtype, added to the scores. A query that sees no key
///           gives 0, and no gradient, as PyTorch
/// causal    query i sees keys 0 … i; not together with a mask dropout   of the probabilities with
/// dropout_p, in training and evaluation alike, as PyTorch; masks as dropout's, the rows those of
/// dim 0 scale     1 / √width unless given
/// Gradient  by a fused kernel that makes the probabilities again; gradients of gradients, and of a
///           mask, by recorded ops that do hold the scores
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for a mask beside causal, and
///           unless 0 <= dropout_p <= 1
/// Source    Vaswani et al. 2017, arXiv:1706.03762; Dao et al. 2022, arXiv:2205.14135
[[nodiscard]] Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor& mask = {}, double dropout_p = 0,
                                                  bool is_causal = false,
                                                  std::optional<double> scale = {});

/// The same for queries, keys and values that one product made, without taking them apart: what
/// MultiheadAttention does with itself.
///
/// Shapes    qkv [batch, n, 3, heads, width], any strides → [batch, n, heads, width]; mask
///           broadcastable to [batch, heads, n, n]
/// Others    as scaled_dot_product_attention; not in PyTorch
[[nodiscard]] Tensor packed_attention(const Tensor& qkv, const Tensor& mask = {},
                                      double dropout_p = 0, bool is_causal = false,
                                      std::optional<double> scale = {});

}  // namespace braid
