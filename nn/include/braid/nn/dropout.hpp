#pragma once
#include <string>

#include <braid/nn/module.hpp>

// Dropout layers. In training, each element (or whole channel) becomes 0 with probability p and the
// others are scaled by 1 / (1 - p); in evaluation they return x. They throw ArgumentError unless p
// is in [0, 1].
namespace braid::nn {

/// Drops single elements of a tensor of any shape.
struct Dropout : Module {
  double p;
  explicit Dropout(double p = 0.5);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Drops whole channels of [n, channels, length].
struct Dropout1d : Module {
  double p;
  explicit Dropout1d(double p = 0.5);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

/// Drops whole channels of [n, channels, height, width].
struct Dropout2d : Module {
  double p;
  explicit Dropout2d(double p = 0.5);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};

}  // namespace braid::nn
