// Tests of where and clamp beyond the table of test_ops.cpp: special values and their gradients.
#include "reference/elementwise.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("special values: where does not let a NaN of the other side into the gradient",
          "[special][gradients]") {
  CHECK(gradient_at([](T x) { return where(gt(x, 0), x, zeros({3})); }, {-1, 0, 4}) ==
        List{0, 0, 1});
  const Tensor a = tensor({1.0, 2.0}).requires_grad_(), b = tensor({3.0, 4.0}).requires_grad_();
  const std::vector<Tensor> g =
      pulled(where(tensor({true, false}), a, b), {a, b}, tensor({kNan, 1.0}));
  check_same(g[0], {kNan, 0});
  check_same(g[1], {0, 1});  // not 0 * NaN
}

TEST_CASE("clamp: NaN, bounds that do not bind, integers at the ends of their types, tensors",
          "[clamp]") {
  check_same(clamp(tensor({kNan, -5.0, 5.0}), -1, 1), {kNan, -1, 1});
  check_same(clamp(tensor({1.0, 2.0}), kNan), {kNan, kNan});
  check_same(clamp(tensor({1.0, 2.0}), 5, 0), {0, 0});
  const Tensor bytes = tensor({0, 7, 255}).to(DType::uint8);
  check_lists({{clamp(bytes, -5, 300), {0, 7, 255}},
               {clamp(bytes, 300), {255, 255, 255}},
               {clamp(bytes, std::nullopt, -1), {0, 0, 0}},
               {clamp(tensor({1, 5}), 1.5, 2.5), {1.5, 2.5}}});
  CHECK(whole(clamp(tensor({kMin, kMax}), std::nullopt, kInf)) == Whole{kMin, kMax});
  // The gradient goes to x inside the bounds (also for NaN), to a bound that is active, half to
  // each at a bound, and to the upper bound if the bounds are crossed.
  const Tensor x = tensor({-2.0, 0.0, 2.0, 0.5, 1.0, 0.0, 1.0, kNan, 3.0}).requires_grad_(),
               low = tensor({-1.0, -1.0, -1.0, 2.0, 1.0, 1.0, 1.0, -1.0, 1.0}).requires_grad_(),
               high = tensor({1.0, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 3.0}).requires_grad_();
  const std::vector<Tensor> g = grad(clamp(x, low, high).sum(), {x, low, high});
  check_lists({{g[0], {0, 1, 0, 0, 0.5, 0, 1, 1, 0.5}},
               {g[1], {1, 0, 0, 0, 0.5, 1, 0, 0, 0}},
               {g[2], {0, 0, 1, 1, 0, 0, 0, 0, 0.5}}});
}

}  // namespace braid::test::on_device
