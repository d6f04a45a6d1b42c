#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the losses and their backward.
namespace braid {

/// Cross entropy of contiguous logits [rows, n] with int64 labels [rows] (stride label_stride),
/// with ε = label_smoothing and w = weight (all 1 if that is null). lse[r] = log-sum-exp of the
/// row;
///     loss[r] = (1 - ε) w[label] (lse[r] - x[r, label]) + ε / n Σ_c w[c] (lse[r] - x[r, c]),
/// and 0 where the label is ignored. sum = Σ_r loss[r] * scale, over rows in a fixed order; with
/// `mean`, Σ_r loss[r] / total, where total = Σ_r w[label] over the rows that are not ignored. sum,
/// row_loss and weight have the logits' dtype. So have lse and total, except that they are float32
/// for 16-bit logits (the rounding of lse would be an error of each exp(x - lse)). A label outside
/// [0, n) that is not ignored throws IndexError on the CPU before anything is written.
struct CrossEntropyArgs {
  DType dtype;
  const void* x;
  const std::int64_t* labels;
  std::int64_t label_stride;
  void* lse;
  void* sum;
  double scale;
  std::int64_t rows, n;
  const void* weight = nullptr;  // [n]
  double label_smoothing = 0;
  bool ignores = false;  // leaves out rows whose label is ignore_index
  std::int64_t ignore_index = 0;
  bool mean = false;
  void* row_loss = nullptr;  // [rows], or null
  void* total = nullptr;     // one number, or null; mean needs it
};

/// dx = (s exp(x - lse) - t - (1 - ε) w[label] onehot(label)) * f, with t[c] = ε / n w[c],
/// s = (1 - ε) w[label] + Σ_c t[c] and f = scale * dy[r * dy_stride], which is divided by total
/// unless that is null. Rows that are ignored get 0.
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
  const void* weight = nullptr;
  double label_smoothing = 0;
  bool ignores = false;
  std::int64_t ignore_index = 0;
  const void* total = nullptr;
  std::int64_t dy_stride = 0;  // 1: one dy for each row
};

/// sum = scale * Σ (a - b)², over n contiguous elements in a fixed order.
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

}  // namespace braid
