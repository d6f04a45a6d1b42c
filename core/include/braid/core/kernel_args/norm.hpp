#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the normalisations and their backward are asked for. Statistics are float32, or float64
// beside float64. weight and bias have the dtype of x and may be null.
namespace braid {

/// Each row of dense [rows, n] by its own statistics (layer, group and RMS norm): y = (x - mean)
/// rstd weight + bias, rstd = 1 / sqrt(mean of (x - mean)² + eps). Without `center` the mean is 0
/// and not stored. Element j of row r takes weight number (r % groups) * (n / inner) + j / inner;
/// inner divides n.
struct NormRowsArgs {
  DType dtype;
  bool center;
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  void* mean;  // [rows], null without center
  void* rstd;  // [rows]
  double eps;
  std::int64_t rows, n, groups, inner;
};

/// With g = dy weight and h = (x - mean) rstd: dx = rstd (g - mean of g (if center) - h * mean of g
/// h); dweight = Σ dy h and dbias = Σ dy over the elements that take it, in fixed order. dx,
/// dweight and dbias may be null.
struct NormRowsBackwardArgs {
  DType dtype;
  bool center;
  const void* x;
  const void* weight;
  const void* mean;
  const void* rstd;
  const void* dy;
  void* dx;
  void* dweight;
  void* dbias;
  std::int64_t rows, n, groups, inner;
};

/// Each channel of dense [batch, channels, inner] by its statistics over batch and inner (batch
/// norm): y = (x - mean) rstd weight + bias. mean, rstd and var (not corrected) are set, in fixed
/// order; with `given` mean and rstd are read, and var is not used.
struct NormChannelsArgs {
  DType dtype;
  bool given;
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  void* mean;
  void* rstd;
  void* var;
  double eps;
  std::int64_t batch, channels, inner;
};

/// The gradients where the statistics are those of x; as NormRowsBackwardArgs with center, a
/// channel for a row.
struct NormChannelsBackwardArgs {
  DType dtype;
  const void* x;
  const void* weight;
  const void* mean;
  const void* rstd;
  const void* dy;
  void* dx;
  void* dweight;
  void* dbias;
  std::int64_t batch, channels, inner;
};

}  // namespace braid
