#pragma once
#include <cstdint>
#include <string>

#include <braid/nn/module.hpp>

// Activation functions as layers, for nn::Sequential. They have no parameters. Each accepts what
// the function of the same name accepts: any shape, floating point; braid/core/ops/activation.hpp
// and softmax.hpp have the formulas. Constructors name their parameters as the layers print them.
namespace braid::nn {

/// max(x, 0).
struct ReLU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// tanh(x).
struct Tanh : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// 1 / (1 + e^(-x)).
struct Sigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
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
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x sigmoid(x).
struct SiLU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// log(1 + e^(beta x)) / beta; x where beta x > threshold.
struct Softplus : Module {
  double beta, threshold;
  explicit Softplus(double beta = 1, double threshold = 20);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^x - 1).
struct ELU : Module {
  double alpha;
  explicit ELU(double alpha = 1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^(x / alpha) - 1).
struct CELU : Module {
  double alpha;
  explicit CELU(double alpha = 1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// 1.0507 elu(x, 1.6733): outputs tend to mean 0 and variance 1 (self-normalising networks).
struct SELU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x where x > 0, else negative_slope x.
struct LeakyReLU : Module {
  double negative_slope;
  explicit LeakyReLU(double negative_slope = 0.01);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x clamped to [min_val, max_val].
///
/// Throws    ArgumentError unless min_val < max_val
struct Hardtanh : Module {
  double min_val, max_val;
  explicit Hardtanh(double min_val = -1, double max_val = 1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x clamped to [0, 6].
struct ReLU6 : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// (x + 3) / 6, clamped to [0, 1].
struct Hardsigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x hardsigmoid(x).
struct Hardswish : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x tanh(softplus(x)).
struct Mish : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// log(sigmoid(x)), without underflow.
struct LogSigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x / (1 + |x|).
struct Softsign : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
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
  X(Softsign, softsign)

/// Softmax along dim.
struct Softmax : Module {
  std::int64_t dim;
  explicit Softmax(std::int64_t dim = -1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Log-softmax along dim.
struct LogSoftmax : Module {
  std::int64_t dim;
  explicit LogSoftmax(std::int64_t dim = -1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Flattens dims start_dim … end_dim into one: [n, 1, 28, 28] → [n, 784].
struct Flatten : Module {
  std::int64_t start_dim, end_dim;
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Returns x.
struct Identity : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return x; }
  BRAID_FIELDS()
};

}  // namespace braid::nn
