#pragma once
#include <string_view>

#include <braid/core/tensor.hpp>

// Activations: elementwise functions of one tensor of any shape, each with one kernel forward and
// one backward. Names, defaults and subgradients at kinks are PyTorch's. Integers are converted to
// float32. Gradients of gradients work. relu, sigmoid, tanh and clamp are in elementwise.hpp,
// softmax in softmax.hpp.
namespace braid {

/// x Φ(x), where Φ is the distribution function of the standard normal distribution (Hendrycks and
/// Gimpel 2016, arXiv:1606.08415). With approximate = "tanh":
/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. Throws ArgumentError unless approximate is "none" or
/// "tanh".
[[nodiscard]] Tensor gelu(const Tensor& x, std::string_view approximate = "none");
/// x sigmoid(x) (Ramachandran, Zoph and Le 2017, arXiv:1710.05941).
[[nodiscard]] Tensor silu(const Tensor& x);
/// log(1 + e^(beta x)) / beta; x itself where beta x > threshold. Throws ArgumentError if beta is 0
/// or NaN.
[[nodiscard]] Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x where x > 0, else alpha (e^x - 1) (Clevert, Unterthiner and Hochreiter 2015,
/// arXiv:1511.07289).
[[nodiscard]] Tensor elu(const Tensor& x, double alpha = 1);
/// x where x > 0, else alpha (e^(x / alpha) - 1) (Barron 2017, arXiv:1704.07483). Throws
/// ArgumentError if alpha is 0 or NaN.
[[nodiscard]] Tensor celu(const Tensor& x, double alpha = 1);
/// 1.0507 elu(x, 1.6733); its outputs tend to mean 0 and variance 1 (Klambauer et al. 2017,
/// arXiv:1706.02515).
[[nodiscard]] Tensor selu(const Tensor& x);
/// x where x > 0, else negative_slope x.
[[nodiscard]] Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x clamped to [min_val, max_val]; no gradient where x <= min_val or x >= max_val. Throws
/// ArgumentError unless min_val < max_val.
[[nodiscard]] Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
[[nodiscard]] Tensor relu6(const Tensor& x);  ///< hardtanh(x, 0, 6)
/// clamp(x + 3, 0, 6) / 6.
[[nodiscard]] Tensor hardsigmoid(const Tensor& x);
/// x hardsigmoid(x) (Howard et al. 2019, arXiv:1905.02244).
[[nodiscard]] Tensor hardswish(const Tensor& x);
/// x tanh(softplus(x)) (Misra 2019, arXiv:1908.08681).
[[nodiscard]] Tensor mish(const Tensor& x);
[[nodiscard]] Tensor logsigmoid(const Tensor& x);  ///< log(sigmoid(x)), without underflow
[[nodiscard]] Tensor softsign(const Tensor& x);    ///< x / (1 + |x|)

}  // namespace braid
