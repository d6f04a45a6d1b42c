#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/max_rank.hpp>

namespace braid {

class Stream;

/// How a kernel walks its operands: collapsed dims, outermost first, strides in elements. Operand 0 is the output.
/// Ops build it from tensors whose extents were checked against their storage; merged dims make a dense operand one dim.
struct Loop {
  static constexpr int kOperands = 4;
  int rank = 0;        // 0: one element
  std::int64_t n = 0;  // all elements; 0: nothing to do
  std::int64_t size[kMaxRank];
  std::int64_t stride[kOperands][kMaxRank];
  /// One dim, and every operand has stride 1.
  bool dense = false;
};

enum class UnaryOp : std::uint8_t { neg, abs, relu, exp, log, sqrt, rsqrt, tanh, sigmoid, sin, cos, reciprocal, square, sign, pow_scalar /* x^alpha */ };
/// out and x have `dtype`; floating point, and for neg, abs, relu, square, sign also integers.
struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  void* out;
  const void* x;
  double alpha;
  Loop loop;
};

enum class BinaryOp : std::uint8_t { add, sub, mul, div, maximum, minimum, relu_backward /* b <= 0 ? 0 : a */, eq, ne, lt, le, gt, ge };
[[nodiscard]] constexpr bool is_comparison(BinaryOp op) noexcept { return op >= BinaryOp::eq; }
/// out = a op b. a, b have `dtype`; out has it too, or bool for comparisons. A null a or b stands for `scalar` (rounded to dtype first).
/// add and sub: out = a ± alpha * b (alpha 1 costs nothing). NaN: maximum and minimum propagate it. out may be a or b itself (same strides). Operands 1 = a, 2 = b.
struct BinaryArgs {
  BinaryOp op;
  DType dtype;
  void* out;
  const void* a;
  const void* b;
  double scalar;
  double alpha;
  Loop loop;
};

/// out = where(condition (bool), a, b); operands 1 = condition, 2 = a, 3 = b.
struct WhereArgs {
  DType dtype;
  void* out;
  const void* condition;
  const void* a;
  const void* b;
  Loop loop;
};

/// out[to] = x[from], converting: float to integer truncates (out of range and NaN: unspecified value, no trap), to bool is != 0. Same device.
struct CopyArgs {
  DType to, from;
  void* out;
  const void* x;
  Loop loop;
};
/// out = value; for int64, `integer` is exact.
struct FillArgs {
  DType dtype;
  void* out;
  double value;
  std::int64_t integer;
  Loop loop;
};

enum class ReduceOp : std::uint8_t { sum, max, min, argmax, argmin };
/// For each element of `keep` (operand 0 = out, 1 = x) reduces over `over` (operand 1 = x). max and min propagate NaN; argmax gives the first index, counted
/// row-major over the reduced dims, and out is int64. sum of float16 and bfloat16 is taken in float32, then multiplied by `scale` (mean) and rounded once.
/// sum of bool, uint8, int32, int64: out is int64. Empty sums are 0; the op refuses empty max, min, argmax. Sums have a fixed order that does not depend on threads.
struct ReduceArgs {
  ReduceOp op;
  DType dtype;
  void* out;
  const void* x;
  double scale;
  Loop keep;
  Loop over;
};

/// What a product does with its result last.
enum class Activation : std::uint8_t { none, relu };
/// C[batch] = activation(op(A) op(B) (+ bias)): op(A) [m, k], op(B) [k, n], C [m, n] row-major with leading dims; ta: A is stored [k, m]; tb: B is stored [n, k].
/// accumulate: C = activation(C + …). bias (n numbers, may be null) is added to every row; not together with accumulate. k == 0 gives zeros (or bias).
/// float32 and float64; float16 and bfloat16 accumulate in float32; int32 and int64 too. Batch strides in elements; a stride of 0 repeats.
/// sum_a (m dense numbers, may be null): set, never added to, to the sums of op(A)'s rows, in a fixed order: beside dW = dyᵀ x these are db. Floating point and
/// batch 1 only. Nothing is done where m, n or batch is 0.
struct GemmArgs {
  DType dtype;
  bool ta, tb, accumulate;
  std::int64_t m, n, k, batch;
  const void* a;
  std::int64_t lda, batch_a;
  const void* b;
  std::int64_t ldb, batch_b;
  void* c;
  std::int64_t ldc, batch_c;
  const void* bias;
  Activation activation = Activation::none;
  void* sum_a = nullptr;
};

/// Two products of one dtype that do not depend on each other, as the backward of a layer has them: dx = dy W, then dW = dyᵀ x and db. Where both are tiny, and
/// launches cost more than they, a GPU does them in one.
struct GemmPairArgs {
  GemmArgs first, second;
};

/// Rows of dense [rows, n]. log: log-softmax. All-(-inf) rows and rows with NaN become NaN.
struct SoftmaxArgs {
  DType dtype;
  bool log;
  const void* x;
  void* y;
  std::int64_t rows, n;
};
/// softmax: dx = y * (dy - sum(y * dy)); log: dx = dy - exp(y) * sum(dy).
struct SoftmaxBackwardArgs {
  DType dtype;
  bool log;
  const void* y;
  const void* dy;
  void* dx;
  std::int64_t rows, n;
};

/// Cross entropy of dense logits [rows, n] with int64 labels [rows] (stride label_stride): lse[r] = log-sum-exp of the row; sum = Σ_r (lse[r] - x[r, label]) * scale,
/// rows in fixed order. sum has the logits' dtype, lse too, but float32 for 16-bit logits (its rounding would be an error of each exp(x - lse)). A label outside [0, n) throws IndexError on the CPU before anything is written.
struct CrossEntropyArgs {
  DType dtype;
  const void* x;
  const std::int64_t* labels;
  std::int64_t label_stride;
  void* lse;
  void* sum;
  double scale;
  std::int64_t rows, n;
};
/// dx = (exp(x - lse) - onehot(label)) * scale * dy[0].
struct CrossEntropyBackwardArgs {
  DType dtype;
  const void* x;
  const std::int64_t* labels;
  std::int64_t label_stride;
  const void* lse;
  const void* dy;
  void* dx;
  double scale;
  std::int64_t rows, n;
};

/// sum = scale * Σ (a - b)², fixed order, over n dense elements.
struct MseArgs {
  DType dtype;
  const void* a;
  const void* b;
  void* sum;
  double scale;
  std::int64_t n;
};
/// da = 2 * scale * dy[0] * (a - b).
struct MseBackwardArgs {
  DType dtype;
  const void* a;
  const void* b;
  const void* dy;
  void* da;
  double scale;
  std::int64_t n;
};

/// out[i, :] = table[index[i], :], dense, any dtype. Indices lie in [0, table_rows), or, with wrap, in [-table_rows, table_rows): negative ones count from the end.
/// Others throw IndexError on the CPU before anything is written.
struct GatherRowsArgs {
  DType dtype;
  const void* table;
  const std::int64_t* index;
  void* out;
  std::int64_t table_rows, rows, width;
  const char* op = "gather_rows" /* for errors */;
  bool wrap = false;
};
/// table[index[i], :] += dy[i, :] in the order of i; the table was zeroed by the op. Same checks, with wrap.
struct ScatterAddRowsArgs {
  DType dtype;
  void* table;
  const std::int64_t* index;
  const void* dy;
  std::int64_t table_rows, rows, width;
};

enum class RandomKind : std::uint8_t { uniform /* [low, high) */, normal /* mean low, deviation high */, integers /* int64 values in [ilow, ihigh) */ };
/// Element i is a function of (seed, stream, i) alone: the same bits on every device, for any number of threads. dense. float64 gets the float32 number widened… see random.hpp.
struct RandomArgs {
  RandomKind kind;
  DType dtype;
  void* out;
  std::int64_t n;
  std::uint64_t seed, stream;
  double low, high;
  std::int64_t ilow, ihigh;
};

/// One parameter of an optimizer step, dense; `m`, `v` are its state.
struct OptimItem {
  void* p;
  const void* g;
  void* m;
  void* v;
  std::int64_t n;
};
/// g' = g + weight_decay * p (and -g with maximize); with momentum: m = first ? g' : momentum * m + (1 - dampening) * g'; g' = nesterov ? g' + momentum * m : m; p -= lr * g'.
/// All arithmetic in dtype (float32 / float64), float16 and bfloat16 through float32.
struct SgdArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;
};
/// p *= 1 - lr * weight_decay; m, v exponential means; p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), bias_i = 1 - beta_i^step. Loshchilov & Hutter 2019, arXiv:1711.05101.
struct AdamWArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;
};

/// All kernels of a backend: one line each. A null entry means that the op does not exist there; `launch` says so.
/// A kernel is queued on the stream it is given (the CPU runs it at once), gets checked arguments, and does nothing for empty ones.
struct KernelTable {
  void (*unary)(const UnaryArgs&, Stream&) = nullptr;
  void (*binary)(const BinaryArgs&, Stream&) = nullptr;
  void (*where)(const WhereArgs&, Stream&) = nullptr;
  void (*copy)(const CopyArgs&, Stream&) = nullptr;
  void (*fill)(const FillArgs&, Stream&) = nullptr;
  void (*reduce)(const ReduceArgs&, Stream&) = nullptr;
  void (*gemm)(const GemmArgs&, Stream&) = nullptr;
  void (*gemm_pair)(const GemmPairArgs&, Stream&) = nullptr;
  void (*softmax)(const SoftmaxArgs&, Stream&) = nullptr;
  void (*softmax_backward)(const SoftmaxBackwardArgs&, Stream&) = nullptr;
  void (*cross_entropy)(const CrossEntropyArgs&, Stream&) = nullptr;
  void (*cross_entropy_backward)(const CrossEntropyBackwardArgs&, Stream&) = nullptr;
  void (*mse)(const MseArgs&, Stream&) = nullptr;
  void (*mse_backward)(const MseBackwardArgs&, Stream&) = nullptr;
  void (*gather_rows)(const GatherRowsArgs&, Stream&) = nullptr;
  void (*scatter_add_rows)(const ScatterAddRowsArgs&, Stream&) = nullptr;
  void (*random)(const RandomArgs&, Stream&) = nullptr;
  void (*sgd)(const SgdArgs&, Stream&) = nullptr;
  void (*adamw)(const AdamWArgs&, Stream&) = nullptr;
};

}  // namespace braid
