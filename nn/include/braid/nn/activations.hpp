#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

// Activation functions as layers, for nn::Sequential. Only PReLU has a parameter. Each accepts what
// the function of the same name accepts: any shape, floating point; braid/core/ops/activation.hpp
// and softmax.hpp have the formulas. Constructors name their parameters as the layers print them.
namespace braid::nn {

/// max(x, 0).
struct ReLU : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// tanh(x).
struct Tanh : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// 1 / (1 + e^(-x)).
struct Sigmoid : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x Φ(x), where Φ is the distribution function of the standard normal distribution. approximate =
/// "tanh" uses the usual approximation by tanh.
///
/// Throws    ArgumentError unless approximate is "none" or "tanh"
///
///     nn::Sequential net{nn::Linear(8, 32), nn::GELU("tanh"), nn::Linear(32, 8)};
struct GELU : Module {
  std::string approximate;
  explicit GELU(std::string approximate = "none");
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x sigmoid(x).
struct SiLU : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// log(1 + e^(beta x)) / beta; x where beta x > threshold.
struct Softplus : Module {
  double beta, threshold;
  explicit Softplus(double beta = 1, double threshold = 20);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^x - 1).
struct ELU : Module {
  double alpha;
  explicit ELU(double alpha = 1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^(x / alpha) - 1).
struct CELU : Module {
  double alpha;
  explicit CELU(double alpha = 1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// 1.0507 elu(x, 1.6733): outputs tend to mean 0 and variance 1 (self-normalising networks).
struct SELU : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x where x > 0, else negative_slope x.
struct LeakyReLU : Module {
  double negative_slope;
  explicit LeakyReLU(double negative_slope = 0.01);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x clamped to [min_val, max_val].
///
/// Throws    ArgumentError unless min_val < max_val
struct Hardtanh : Module {
  double min_val, max_val;
  explicit Hardtanh(double min_val = -1, double max_val = 1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x clamped to [0, 6].
struct ReLU6 : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// (x + 3) / 6, clamped to [0, 1].
struct Hardsigmoid : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x hardsigmoid(x).
struct Hardswish : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x tanh(softplus(x)).
struct Mish : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// log(sigmoid(x)), without underflow.
struct LogSigmoid : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x / (1 + |x|).
struct Softsign : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// x - tanh(x).
struct Tanhshrink : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// The first half of x along dim, times the sigmoid of the second (Dauphin et al. 2016,
/// arXiv:1612.08083).
struct GLU : Module {
  std::int64_t dim;
  explicit GLU(std::int64_t dim = -1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// 0 where -lambda <= x <= lambda, else x.
struct Hardshrink : Module {
  double lambda;
  explicit Hardshrink(double lambda = 0.5);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x moved by lambda towards 0.
///
/// Throws    ArgumentError for a negative lambda
struct Softshrink : Module {
  double lambda;
  explicit Softshrink(double lambda = 0.5);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// `value` where x <= threshold, else x.
struct Threshold : Module {
  double threshold, value;
  Threshold(double threshold, double value);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// The options of PReLU.
struct PReLUOptions {
  double init = 0.25;  ///< the first value of the weight
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// x where x > 0, else weight x, where the weight is trained: one number, or one for each channel
/// (He et al. 2015, arXiv:1502.01852).
///
/// Throws    ArgumentError unless num_parameters >= 1
struct PReLU : Module {
  std::int64_t num_parameters;
  Parameter weight;
  explicit PReLU(std::int64_t num_parameters = 1, const PReLUOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight)
};

/// The layers that only call an op, X(Layer, op): their calls and tests are made from this list.
#define BRAID_ACTIVATION_LAYERS(X) \
  X(SiLU, silu)                    \
  X(SELU, selu)                    \
  X(ReLU6, relu6)                  \
  X(Hardsigmoid, hardsigmoid)      \
  X(Hardswish, hardswish)          \
  X(Mish, mish)                    \
  X(LogSigmoid, logsigmoid)        \
  X(Softsign, softsign)            \
  X(Tanhshrink, tanhshrink)

/// Softmax along dim.
struct Softmax : Module {
  std::int64_t dim;
  explicit Softmax(std::int64_t dim = -1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Softmax of -x along dim.
struct Softmin : Module {
  std::int64_t dim;
  explicit Softmin(std::int64_t dim = -1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Softmax over the channels of [n, channels, height, width] or [channels, height, width].
struct Softmax2d : Module {
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS()
};

/// Log-softmax along dim.
struct LogSoftmax : Module {
  std::int64_t dim;
  explicit LogSoftmax(std::int64_t dim = -1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Flattens dims start_dim … end_dim into one: [n, 1, 28, 28] → [n, 784].
struct Flatten : Module {
  std::int64_t start_dim, end_dim;
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Several dims in place of one: [n, 784] → [n, 1, 28, 28].
struct Unflatten : Module {
  std::int64_t dim;
  Shape unflattened_size;
  Unflatten(std::int64_t dim, const Shape& unflattened_size);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// cosine_similarity and pairwise_distance of two tensors.
struct CosineSimilarity : Module {
  std::int64_t dim;
  double eps;
  explicit CosineSimilarity(std::int64_t dim = 1, double eps = 1e-8);
  BRAID_FORWARD(Tensor, (const Tensor& a, const Tensor& b))
  BRAID_FIELDS()
};
struct PairwiseDistance : Module {
  double p, eps;
  bool keepdim;
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false);
  BRAID_FORWARD(Tensor, (const Tensor& a, const Tensor& b))
  BRAID_FIELDS()
};

/// Returns x.
struct Identity : Module {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  using CallsHooks = void;
  BRAID_FIELDS()
};

}  // namespace braid::nn
