#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

namespace braid {

/// Computes softmax(scale q kᵀ + mask) v in one pass over tiles of keys, without storing the matrix
/// of scores. In two cases it uses recorded ops, which do store the scores: for a mask that
/// requires a gradient, and on CUDA for a width or value_width above 128 (256 for float16 and
/// bfloat16).
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

/// The options of varlen_attn, which are those of scaled_dot_product_attention.
struct VarlenAttnOptions {
  bool is_causal = false;            ///< aligned at the last query and the last key
  std::optional<double> scale = {};  ///< 1 / √width by default
  double dropout_p = 0;
  bool enable_gqa = false;  ///< fewer heads of k and v
};

/// Computes attention within each of several sequences, whose tokens follow each other in memory,
/// so that nothing is padded. Sequence b has the queries [cu_seq_q[b], cu_seq_q[b + 1]) and the
/// keys and values [cu_seq_k[b], cu_seq_k[b + 1]); there may be none. The result is that of one
/// scaled_dot_product_attention for each sequence.
///
/// With is_causal, query i of a sequence with n queries and m keys sees the keys 0 … i + m - n, as
/// in PyTorch and FlashAttention: the last query sees all. scaled_dot_product_attention is aligned
/// at the first query and key; both are the same where n = m. A query that sees no key gives 0 and
/// no gradient.
///
/// Shapes    query [queries, heads, width], key [keys, heads, width], value [keys, heads,
///           value_width] → [queries, heads, value_width]; with enable_gqa, key and value have
///           numbers of heads that divide those of query. cu_seq_q and cu_seq_k [sequences + 1]
/// Types     floating point, one dtype; float16 and bfloat16 are computed in float32. cu_seq_q and
///           cu_seq_k are int32, on the device of query
/// cu_seq    rises from 0 to the number of queries, or of keys. No sequence has more than max_q
///           queries or max_k keys. This is checked on the CPU. On CUDA it would be a wait for the
///           device: there rows that are in no sequence, or beyond max_q or max_k of one, are left
///           out, and their results and gradients are 0
/// Random    as dropout, with the tokens along dim 0
///
/// Gradient  as of scaled_dot_product_attention. Gradients of gradients, and on CUDA a width above
///           those of the kernels (128; of 16-bit types 256), take the sequences one by one, and
///           read cu_seq, which waits for the device
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for a cu_seq on the CPU that is not
///           as above, for a max_q or max_k that no cu_seq fits, for a dropout_p outside [0, 1],
///           and for a scale that is not finite
/// Source    Dao 2023, arXiv:2307.08691. PyTorch's torch.nn.attention.varlen.varlen_attn has
///           neither dropout nor a value_width, and is_causal is its window_size=(-1, 0)
///
///     const Tensor q = randn({8, 4, 64});  // sequences of 5 tokens and of 3
///     const Tensor starts = tensor({0, 5, 8}, {.dtype = kInt32});
///     varlen_attn(q, q, q, starts, starts, 5, 5, {.is_causal = true});  // [8, 4, 64]
[[nodiscard]] Tensor varlen_attn(const Tensor& query, const Tensor& key, const Tensor& value,
                                 const Tensor& cu_seq_q, const Tensor& cu_seq_k, std::int64_t max_q,
                                 std::int64_t max_k, const VarlenAttnOptions& options = {});

/// Computes scaled_dot_product_attention from one tensor that holds queries, keys and values, as
/// one product computes them. It does not split the tensor. MultiheadAttention uses it for
/// self-attention.
///
/// Shapes    qkv [batch, n, 3, heads, width], any strides → [batch, n, heads, width]; mask
///           broadcastable to [batch, heads, n, n]
///
/// Everything else is as for scaled_dot_product_attention. PyTorch has no such function.
[[nodiscard]] Tensor packed_attention(const Tensor& qkv, const Tensor& mask = {},
                                      double dropout_p = 0, bool is_causal = false,
                                      std::optional<double> scale = {});

}  // namespace braid
