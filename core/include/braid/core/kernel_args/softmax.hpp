#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What softmax, log-softmax and their backward are asked for.
namespace braid {

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

}  // namespace braid
