#pragma once
#include <cstdint>
#include <utility>

#include <braid/core/tensor.hpp>

// What parameters start with. Each function writes into the tensor there is, a parameter too,
// without history, and returns it. Numbers come from the stream of manual_seed and are the same on
// every device. Formulas, names and defaults are PyTorch's; its random numbers are others.
//
// Throws    DTypeError for a tensor that is not floating point, ShapeError where a formula asks for
//           dimensions, ArgumentError for options out of range
namespace braid::nn::init {

const Tensor& uniform_(const Tensor& t, double low = 0, double high = 1);
const Tensor& normal_(const Tensor& t, double mean = 0, double std = 1);
/// Normal numbers between low and high, by the inverse of the normal distribution: none is drawn
/// twice.
const Tensor& trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double low = -2,
                            double high = 2);
const Tensor& constant_(const Tensor& t, double value);
const Tensor& zeros_(const Tensor& t);
const Tensor& ones_(const Tensor& t);
/// The identity, of a matrix of any sides.
const Tensor& eye_(const Tensor& t);

enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// How much a layer's weights are scaled for what follows it: 1, 1, 5/3, √2, √(2 / (1 + slope²)),
/// 3/4. Only leaky_relu has a slope.
[[nodiscard]] double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

/// Numbers that go into, and out of, an element of a layer's result with this weight: [out, in,
/// kernel…]. Throws ShapeError below two dimensions.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> fan_in_and_out(const Tensor& weight);

/// Uniform within ±gain √(6 / (fan_in + fan_out)). Glorot & Bengio 2010.
const Tensor& xavier_uniform_(const Tensor& t, double gain = 1);
/// Deviation gain √(2 / (fan_in + fan_out)).
const Tensor& xavier_normal_(const Tensor& t, double gain = 1);

enum class Fan : std::uint8_t { in, out };
struct KaimingOptions {
  double a = 0;  ///< slope of leaky_relu
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// Uniform within ±gain √(3 / fan). He et al. 2015, arXiv:1502.01852.
const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {});
/// Deviation gain / √fan.
const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {});

/// gain times a matrix [t.size(0), the rest] whose rows, or, where there are more of them, columns
/// are orthogonal and of length 1, of uniform direction. Saxe, McClelland & Ganguli 2014,
/// arXiv:1312.6120.
const Tensor& orthogonal_(const Tensor& t, double gain = 1);

/// Normal numbers of a matrix; in each column a share of `sparsity`, rounded up, is 0. Martens
/// 2010.
const Tensor& sparse_(const Tensor& t, double sparsity, double std = 0.01);

}  // namespace braid::nn::init
