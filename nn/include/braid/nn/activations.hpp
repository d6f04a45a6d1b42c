#pragma once
#include <cstdint>
#include <string>

#include <braid/nn/module.hpp>

// Functions as layers, for nn::Sequential. They have no parameters; any shape and floating dtype
// that the function of the same name takes.
namespace braid::nn {

/// max(x, 0).
struct ReLU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Tanh : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Sigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x Φ(x); approximate "none" or "tanh". Throws ArgumentError for another word.
struct GELU : Module {
  std::string approximate;
  explicit GELU(std::string how = "none");
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x sigmoid(x).
struct SiLU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// log(1 + e^(beta x)) / beta, x itself where beta x > threshold.
struct Softplus : Module {
  double beta, threshold;
  explicit Softplus(double steepness = 1, double linear_from = 20)
      : beta(steepness), threshold(linear_from) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^x - 1).
struct ELU : Module {
  double alpha;
  explicit ELU(double scale = 1) : alpha(scale) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x where x > 0, else alpha (e^(x / alpha) - 1).
struct CELU : Module {
  double alpha;
  explicit CELU(double scale = 1) : alpha(scale) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct SELU : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// x where x > 0, else negative_slope x.
struct LeakyReLU : Module {
  double negative_slope;
  explicit LeakyReLU(double slope = 0.01) : negative_slope(slope) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x cut off at min_val and max_val. Throws ArgumentError unless min_val < max_val.
struct Hardtanh : Module {
  double min_val, max_val;
  explicit Hardtanh(double low = -1, double high = 1);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

struct ReLU6 : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Hardsigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Hardswish : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Mish : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct LogSigmoid : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

struct Softsign : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS()
};

/// Softmax along dim.
struct Softmax : Module {
  std::int64_t dim;
  explicit Softmax(std::int64_t along = -1) : dim(along) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Log-softmax along dim.
struct LogSoftmax : Module {
  std::int64_t dim;
  explicit LogSoftmax(std::int64_t along = -1) : dim(along) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Dims start_dim … end_dim as one: [n, 1, 28, 28] → [n, 784].
struct Flatten : Module {
  std::int64_t start_dim, end_dim;
  explicit Flatten(std::int64_t start = 1, std::int64_t end = -1)
      : start_dim(start), end_dim(end) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// x itself.
struct Identity : Module {
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return x; }
  BRAID_FIELDS()
};

}  // namespace braid::nn
