#pragma once
// Shared by scaled_dot_product_attention (attention.cpp) and varlen_attn (attention_varlen.cpp).
#include <optional>

#include <braid/core/internal/kernel_args/attention.hpp>
#include <braid/core/random.hpp>
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// The parameters of attention other than its operands.
struct AttentionSetting {
  bool causal;
  double scale, dropout_p;
  RandomKey key;
  /// Of one of several sequences, for recorded ops: with causal, query i sees keys 0 … i + past.
  std::int64_t past = 0;
  /// Of one of several sequences, for recorded ops: the random numbers are those of [queries,
  /// heads, most_keys], with rows from key.first_row on. 0: those of [batch, heads, queries, keys].
  std::int64_t most_keys = 0;
};

/// Queries, keys and values, each [batch, heads, rows, width]. They may be part of a graph. k and v
/// have as many heads as q, or fewer: then query head h uses the head h / group.
struct AttentionHeads {
  Tensor q, k, v;
  [[nodiscard]] std::int64_t query_heads() const { return q.shape()[1]; }
  [[nodiscard]] std::int64_t key_heads() const { return k.shape()[1]; }
};

/// Describes a tensor [batch, heads, rows, width] for the kernel. Requires stride 1 in width.
[[nodiscard]] AttentionOperand attention_operand(const Tensor& t);
/// Returns t with stride 1 in its last dim.
[[nodiscard]] Tensor with_dense_rows(const Tensor& t);
/// The kernel's arguments. mask: [batch, heads, queries, keys] or undefined;
/// out: [batch, queries, heads, width].
[[nodiscard]] AttentionArgs attention_args(const AttentionHeads& h, const Tensor& mask,
                                           const Tensor& out, const Tensor& lse,
                                           const AttentionSetting& s);
/// Returns true if the kernels support widths of a dtype on a device.
[[nodiscard]] bool fits_kernels(const AttentionHeads& h);

/// Computes attention with recorded ops. Returns [batch, heads, queries, width].
[[nodiscard]] Tensor composed_attention(const AttentionHeads& h, const Tensor& mask,
                                        const AttentionSetting& s);
/// Computes the gradients of q, k and v with recorded ops. dy: [batch, heads, queries, width].
[[nodiscard]] AttentionHeads composed_attention_backward(const AttentionHeads& h,
                                                         const Tensor& mask, const Tensor& dy,
                                                         const AttentionSetting& s);

/// Repeats the heads of k or v, along dim -3, so that there are `heads`.
[[nodiscard]] Tensor with_heads(const Tensor& t, std::int64_t heads);
/// Throws ShapeError unless the heads of k and v, along dim -3, divide those of q.
void check_head_groups(const char* op, const Tensor& q, const Tensor& k, const Tensor& v);
/// Throws ArgumentError for a scale that is not finite.
void check_attention_scale(const char* op, std::optional<double> scale);
/// The default is 1 / √width.
[[nodiscard]] double attention_scale(std::optional<double> scale, std::int64_t width);

}  // namespace braid::ops
