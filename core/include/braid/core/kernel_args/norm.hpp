#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the normalisations and their backward. Statistics are float32, or float64 for
// float64. weight and bias have the dtype of x and may be null.
namespace braid {

/// Normalises each row of contiguous [rows, n] by its own statistics (layer, group and RMS norm):
/// y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(mean((x - mean)²) + eps). Without `center`
/// the mean is taken as 0 and not stored. Element j of row r uses element
/// (r % groups) * (n / inner) + j / inner of weight and bias; inner divides n.
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

/// With g = dy weight and h = (x - mean) rstd: dx = rstd (g - mean(g) (if center) - h * mean(g h));
/// dweight = Σ dy h and dbias = Σ dy over the elements that use them, in a fixed order. dx, dweight
/// and dbias may be null.
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

/// Normalises each channel of contiguous [batch, channels, inner] by its statistics over batch and
/// inner (batch norm): y = (x - mean) rstd weight + bias. mean, rstd and var (the biased one) are
/// computed, in a fixed order, and stored; with `given`, mean and rstd are read and var is not
/// used.
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

/// The gradients if the statistics are those of x: as NormRowsBackwardArgs with center, with
/// channels instead of rows.
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
