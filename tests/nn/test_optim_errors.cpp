// Optimizers: options and parameters that are refused.
#include <limits>
#include <vector>

#include <braid/braid.hpp>

#include "optim_cases.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

TEST_CASE("optimizers: options out of range", "[nn][optim][errors]") {
  const Tensor p = leaf({2}, DType::float32, here(), 1);
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  const auto sgd = [&](const optim::SgdOptions& o) { optim::SGD made({p}, o); };
  const auto adamw = [&](const optim::AdamWOptions& o) { optim::AdamW made({p}, o); };
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got -1", sgd({.lr = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got nan", sgd({.lr = nan}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got inf", sgd({.lr = inf}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected momentum >= 0, got -0.5",
                    sgd({.momentum = -0.5}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected weight_decay >= 0, got -2",
                    sgd({.weight_decay = -2}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected a finite dampening, got nan",
                    sgd({.momentum = 0.9, .dampening = nan}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "SGD: expected momentum > 0 and dampening == 0 with nesterov, got momentum 0 and dampening 0",
      sgd({.nesterov = true}));
  CHECK_THROWS_TEXT(ArgumentError, "got momentum 0.9 and dampening 0.1",
                    sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}));
  CHECK_THROWS_TEXT(ArgumentError, "AdamW: expected lr >= 0, got -1", adamw({.lr = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "AdamW: expected 0 <= beta1 < 1, got 1", adamw({.beta1 = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "AdamW: expected 0 <= beta2 < 1, got -0.1",
                    adamw({.beta2 = -0.1}));
  CHECK_THROWS_TEXT(ArgumentError, "AdamW: expected eps >= 0, got -1", adamw({.eps = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "AdamW: expected weight_decay >= 0, got nan",
                    adamw({.weight_decay = nan}));
  optim::SGD made({p}, {.lr = 0.5});
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got -3", made.set_lr(-3));
  CHECK(made.lr() == 0.5);
  made.set_lr(0.25);
  CHECK(made.options().lr == 0.25);
  p.set_grad(ones({2}));
  const Numbers before = p.to_vector<double>();
  made.step();
  CHECK(p.to_vector<double>()[0] == Approx(before[0] - 0.25));
}

TEST_CASE("optimizers: parameters that are refused", "[nn][optim][errors]") {
  const Tensor p = leaf({2}, DType::float32, here(), 1);
  const auto make = [](std::vector<Tensor> list) { optim::SGD made(std::move(list)); };
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected at least one parameter, got 0", make({}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected every parameter once, got the one at position 2 twice",
                    make({p, leaf({1}, DType::float32, here(), 2), p}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "SGD: expected parameters that are leaves, got one that an op made at position 0",
      make({p * 2.0}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected defined parameters, got an undefined one at position 1",
                    make({p, {}}));
  const Tensor wide = zeros({1}).expand({2}).requires_grad_();
  CHECK_THROWS_TEXT(LayoutError,
                    "SGD: expected parameters whose elements each have their own memory, got an "
                    "expanded one at position 1",
                    make({p, wide}));
  CHECK_THROWS_TEXT(DTypeError, "SGD: expected floating point parameters, got int64 at position 0",
                    make({ones({1}, {.dtype = DType::int64})}));
}

}  // namespace braid::test::on_device
