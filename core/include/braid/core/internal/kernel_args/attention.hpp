#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of scaled dot-product attention and its backward.
namespace braid {

struct RandomShift;  // random.hpp

/// A tensor [batch, heads, rows, width] with unit stride in width.
struct AttentionOperand {
  void* data;
  std::int64_t batch, head, row;  // strides in elements
};

/// What is added to the scores: [batch, heads, queries, keys] by strides; a stride of 0 repeats.
/// For bool, false means -inf.
struct AttentionMask {
  const void* data;  // may be null
  bool is_bool;      // else it has the operands' dtype
  std::int64_t batch, head, row, column;
};

/// out = softmax(scale q kᵀ + mask) v for each head; the matrix of scores is not stored. A row
/// whose scores are all -inf gives 0. causal: query i sees keys 0 … i. lse [batch, heads, queries]
/// is set to log Σ exp of the scores, in float32, or in float64 for float64; -inf for a row that
/// sees no key. Query head h uses head h / group of k and v.
struct AttentionArgs {
  DType dtype;
  bool causal;
  double scale;
  AttentionOperand q, k, v, out;
  AttentionMask mask;
  void* lse;
  std::int64_t batch, heads, queries, keys, width, value_width;
  std::int64_t group = 1;  // query heads for each head of k and v; divides heads
  // Dropout of the probabilities: threshold, seed, stream and scale as in DropoutArgs, over [all
  // heads, queries, keys]. With threshold 0 there is none.
  std::uint64_t seed, stream, threshold;
  std::int64_t first_head;  // the index of head 0 of this batch in the whole one
  double drop_scale;
  const RandomShift* shift = nullptr;  // as in DropoutArgs
};

/// With p = exp(scores - lse): dv = pᵀ dout, ds = p (dout vᵀ - Σ out dout), dq = scale ds k,
/// dk = scale dsᵀ q. dk and dv are sums over the query heads of a group, added in their order.
struct AttentionBackwardArgs {
  AttentionArgs forward;  // out and lse are read
  AttentionOperand dout, dq, dk, dv;
};

}  // namespace braid
