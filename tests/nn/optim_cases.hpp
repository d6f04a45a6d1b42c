#pragma once
// Every optimizer with some options, beside its update as a plain loop in double; and parameters
// for them.
#include <braid/braid.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

using Numbers = std::vector<double>;

/// One parameter's update in double, as the formulas say; `m`, `v` and `s` are its state, `step`
/// counts from 1.
using Reference =
    std::function<void(Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int step)>;

struct Case {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)> make;
  Reference reference;
};
[[nodiscard]] std::vector<Case> cases();

struct Tracked {  // a parameter, and what it must be
  Tensor tensor;
  Numbers p, m, v, s;
  int step = 0;
  explicit Tracked(const Tensor& t);
  /// The next step's gradient.
  void take(const Case& c, const Tensor& grad);
  /// Within `tolerance` of what it must be, relative to 1 + its size.
  [[nodiscard]] bool close(double tolerance) const;
};

/// Random numbers in [-1, 1) that require a gradient.
[[nodiscard]] Tensor leaf(const Shape& shape, std::uint64_t seed, DType dtype = DType::float32,
                          Device device = here());

}  // namespace braid::test::on_device
