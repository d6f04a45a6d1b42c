#pragma once
// Every optimizer with several sets of options, and for each a reference update as a plain loop in
// double.
#include <braid/braid.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

using Numbers = std::vector<double>;

/// Updates one parameter in double by the published formulas. `m`, `v` and `s` are its state;
/// `step` counts from 1.
using Reference =
    std::function<void(Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int step)>;

struct Case {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)> make;
  Reference reference;
};
[[nodiscard]] std::vector<Case> cases();

struct Tracked {  // a parameter and its expected values
  Tensor tensor;
  Numbers p, m, v, s;
  int step = 0;
  explicit Tracked(const Tensor& t);
  /// Sets the gradient of the next step, and updates the expected values.
  void take(const Case& c, const Tensor& grad);
  /// Returns whether each element is within tolerance · (1 + |expected|) of its expected value.
  [[nodiscard]] bool close(double tolerance) const;
};

/// Returns random numbers in [-1, 1); the tensor requires a gradient.
[[nodiscard]] Tensor leaf(const Shape& shape, std::uint64_t seed, DType dtype = DType::float32,
                          Device device = here());

}  // namespace braid::test::on_device
