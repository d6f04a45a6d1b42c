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

/// Sequences of several lengths, whose rows follow each other in the operands. `batch` counts them,
/// and the operands have a batch stride of 0. Sequence b has the queries [q_starts[b],
/// q_starts[b + 1]), at most `queries` of them, and so the keys. Query i of a sequence with q
/// queries and k keys sees the keys 0 … i + k - q if causal. lse is [heads, q_rows].
///
/// On the CPU the starts rise from 0 to the number of rows, and no sequence is longer than it may
/// be. A CUDA device gets any numbers, and leaves out what does not fit: results and gradients of
/// rows in no sequence are 0.
struct AttentionSequences {
  const std::int32_t* q_starts = nullptr;  // [batch + 1]; null: all sequences have one length
  const std::int32_t* k_starts = nullptr;  // [batch + 1]
  std::int64_t q_rows = 0, k_rows = 0;     // of all sequences
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
  // heads, queries, keys]; of sequences of several lengths over [q_rows, heads, keys], where `keys`
  // is the longest. With threshold 0 there is none.
  std::uint64_t seed, stream, threshold;
  std::int64_t first_head;  // the index of head 0 of this batch in the whole one
  double drop_scale;
  const RandomShift* shift = nullptr;  // as in DropoutArgs
  AttentionSequences sequences = {};   // without a mask
};

/// With p = exp(scores - lse): dv = pᵀ dout, ds = p (dout vᵀ - Σ out dout), dq = scale ds k,
/// dk = scale dsᵀ q. dk and dv are sums over the query heads of a group, added in their order.
struct AttentionBackwardArgs {
  AttentionArgs forward;  // out and lse are read
  AttentionOperand dout, dq, dk, dv;
};

}  // namespace braid
