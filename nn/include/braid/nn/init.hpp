#pragma once
#include <cstdint>
#include <utility>

#include <braid/core/tensor.hpp>

// Initialisation of parameters. Each function overwrites the given tensor, which may be a
// parameter, in place; autograd does not record it. It returns the tensor. The random numbers come
// from the stream of manual_seed and are the same on every device. Formulas, names and defaults are
// PyTorch's; the random numbers differ from PyTorch's.
//
// Throws    DTypeError if the tensor is not floating point, ShapeError if a formula needs more
//           dimensions, ArgumentError if an option is out of range
namespace braid::nn::init {

/// Uniform in [low, high).
const Tensor& uniform_(const Tensor& t, double low = 0, double high = 1);
/// Normal with the given mean and standard deviation.
const Tensor& normal_(const Tensor& t, double mean = 0, double std = 1);
/// Normal numbers restricted to [low, high]. Uses the inverse of the distribution function, so that
/// no number is rejected and drawn again.
const Tensor& trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double low = -2,
                            double high = 2);
const Tensor& constant_(const Tensor& t, double value);
const Tensor& zeros_(const Tensor& t);
const Tensor& ones_(const Tensor& t);
/// The identity matrix; the tensor may be a matrix of any height and width.
const Tensor& eye_(const Tensor& t);

enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// The factor by which a layer's weights are scaled for the nonlinearity after it: 1, 1, 5/3, √2,
/// √(2 / (1 + slope²)), 3/4, in the order of the enum. Only leaky_relu uses `slope`.
[[nodiscard]] double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

/// Returns fan_in and fan_out of a weight [out, in, kernel…]: in · kernel size and out · kernel
/// size. Throws ShapeError below two dimensions.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> fan_in_and_out(const Tensor& weight);

/// Uniform within ±gain √(6 / (fan_in + fan_out)). Glorot & Bengio 2010.
const Tensor& xavier_uniform_(const Tensor& t, double gain = 1);
/// Normal with standard deviation gain √(2 / (fan_in + fan_out)).
const Tensor& xavier_normal_(const Tensor& t, double gain = 1);

enum class Fan : std::uint8_t { in, out };
struct KaimingOptions {
  double a = 0;  ///< slope of leaky_relu
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// Uniform within ±gain √(3 / fan). He et al. 2015, arXiv:1502.01852.
const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {});
/// Normal with standard deviation gain / √fan.
const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {});

/// Fills t, seen as a matrix [t.size(0), the rest], with gain times a uniformly distributed random
/// orthogonal matrix: its rows are orthogonal and of length 1, or its columns if there are more
/// rows than columns. Saxe, McClelland & Ganguli 2014, arXiv:1312.6120.
const Tensor& orthogonal_(const Tensor& t, double gain = 1);

/// Fills a matrix with normal numbers and sets ⌈sparsity · rows⌉ random elements of each column to
/// 0. Martens 2010.
const Tensor& sparse_(const Tensor& t, double sparsity, double std = 0.01);

}  // namespace braid::nn::init
