#pragma once
#include <cstdint>
#include <string>

#include <braid/nn/module.hpp>

// Functions as layers, for nn::Sequential. They have no parameters; any shape and floating dtype that the function of the same name takes.
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
  explicit Flatten(std::int64_t start = 1, std::int64_t end = -1) : start_dim(start), end_dim(end) {}
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
