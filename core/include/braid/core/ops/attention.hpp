#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

namespace braid {

/// Computes softmax(scale q kᵀ + mask) v in one pass over tiles of keys, without storing the matrix
/// of scores. In two cases it uses recorded ops, which do store the scores: for a mask that
/// requires a gradient, and on CUDA for a width or value_width above 128.
///
/// With is_causal, query i sees only keys 0 … i. Each probability is set to 0 with probability
/// dropout_p, in training and in evaluation, as in PyTorch.
///
/// With enable_gqa, k and v may have fewer heads than q, along dim -3: query head h uses the key
/// head h / (heads / key_heads). The result is that of repeat_interleave(k, heads / key_heads, -3),
/// with the same random numbers, but nothing is repeated in memory. If k and v have different
/// numbers of heads, both are repeated to the least common multiple.
///
/// Shapes    q [.., queries, width], k [.., keys, width], v [.., keys, value_width] → [.., queries,
///           value_width]; the leading dims broadcast, but heads do not with enable_gqa: q [..,
///           heads, queries, width], and k and v have numbers of heads that divide it
/// Types     floating point, one dtype; float16 and bfloat16 are computed in float32
/// mask      undefined, or broadcastable to [.., queries, keys]: bool, where false hides a key; or
///           of q's dtype, added to the scores. A query that sees no key gives 0 and no gradient,
///           as in PyTorch
/// scale     1 / √width by default
/// Random    as dropout, with the rows along dim 0
///
/// Gradient  a fused kernel computes the probabilities again. Gradients of gradients use recorded
///           ops, which store the scores
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for a mask together with is_causal,
///           for a dropout_p outside [0, 1], and for a scale that is not finite
/// Source    Vaswani et al. 2017, arXiv:1706.03762; Dao et al. 2022, arXiv:2205.14135; Ainslie et
///           al. 2023, arXiv:2305.13245, for enable_gqa
///
///     const Tensor q = randn({8, 4, 100, 64}), k = randn({8, 4, 120, 64}), v = k * 0.5;
///     scaled_dot_product_attention(q, k, v);                 // [8, 4, 100, 64]
///     scaled_dot_product_attention(q, q, q, {}, 0.1, true);  // causal, with dropout
///     const Tensor few = randn({8, 2, 120, 64});             // heads 0, 0, 1 and 1 of keys
///     scaled_dot_product_attention(q, few, few, {}, 0, false, {}, true);  // [8, 4, 100, 64]
[[nodiscard]] Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor& mask = {}, double dropout_p = 0,
                                                  bool is_causal = false,
                                                  std::optional<double> scale = {},
                                                  bool enable_gqa = false);

/// Computes the same from one tensor that holds queries, keys and values, as one product computes
/// them. It does not split the tensor. MultiheadAttention uses it for self-attention.
///
/// Shapes    qkv [batch, n, 3, heads, width], any strides → [batch, n, heads, width]; mask
///           broadcastable to [batch, heads, n, n]
///
/// Everything else is as for scaled_dot_product_attention. PyTorch has no such function.
[[nodiscard]] Tensor packed_attention(const Tensor& qkv, const Tensor& mask = {},
                                      double dropout_p = 0, bool is_causal = false,
                                      std::optional<double> scale = {});

}  // namespace braid
