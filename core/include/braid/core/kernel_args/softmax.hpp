#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of softmax, log-softmax and their backward.
namespace braid {

/// Rows of contiguous [rows, n]. log: log-softmax. Rows that are all -inf or contain NaN become
/// NaN.
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

}  // namespace braid
