#pragma once
#include <string>

#include <braid/nn/module.hpp>

// Dropout as layers: in training each element (or whole channel) becomes 0 with probability p; in
// evaluation x itself. p outside [0, 1] is an ArgumentError.
namespace braid::nn {

struct Dropout : Module {
  double p;
  explicit Dropout(double probability = 0.5);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Channels of [n, channels, length].
struct Dropout1d : Module {
  double p;
  explicit Dropout1d(double probability = 0.5);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Channels of [n, channels, height, width].
struct Dropout2d : Module {
  double p;
  explicit Dropout2d(double probability = 0.5);
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

}  // namespace braid::nn
