// Tests of subgradients at kinks, gradients at zeros and next to NaN.
#include "reference/elementwise.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("special values: subgradients at kinks, and a NaN's gradient", "[special][gradients]") {
  struct Case {
    const char* name;
    std::function<Tensor(T)> f;
    List at, want;
  };
  const List steps{-2, 0, 3}, kinks{-3, 3, 0, 1, -1, 6, kNan};
  const auto rows = [](T x) { return amax(x.reshape({2, 2}), {1}); };
  for (const Case& c : std::vector<Case>{
           {"abs", abs, steps, {-1, 0, 1}},
           {"relu", relu, steps, {0, 0, 1}},
           {"sign", sign, steps, {0, 0, 0}},
           {"floor", [](T x) { return floor(mul(x, 2)); }, {0.3, 1.7}, {0, 0}},
           {"div down", [](T x) { return div(x, tensor({0.0, 2.0}), "trunc"); }, {7, kInf}, {0, 0}},
           {"div down", [](T x) { return div(tensor({7.0, kInf}), x, "trunc"); }, {0, 2}, {0, 0}},
           {"div down", [](T x) { return div(x, 0.0, "trunc"); }, {7, 0}, {0, 0}},
           // Equal values share the gradient. A NaN counts as not clamped, and as the largest and
           // smallest.
           {"max", [](T x) { return max(x); }, {3, 1, 3, 3, 0, 3}, {0.25, 0, 0.25, 0.25, 0, 0.25}},
           {"min", [](T x) { return min(x); }, {3, 1, 3, 1}, {0, 0.5, 0, 0.5}},
           {"max of rows", rows, {3, 1, 2, 2}, {1, 0, 0.5, 0.5}},
           {"relu of tiny and large numbers",
            relu,
            {0.0, -0.0, 1e-30, -1e-30, 3e38, -3e38},
            {0, 0, 1, 0, 1, 0}},
           {"relu of NaN", relu, {-2, kNan, 3}, {0, 1, 1}},
           {"max of NaN", [](T x) { return max(x); }, {1, kNan, 3}, {0, 1, 0}},
           {"min of NaN", [](T x) { return min(x); }, {kNan, 1, kNan}, {0.5, 0, 0.5}},
           {"max of rows with NaN", rows, {1, kNan, 3, 2}, {0, 1, 1, 0}},
           {"square", [](T x) { return pow(x, 2); }, {0, -3}, {0, -6}},
           {"pow 1", [](T x) { return pow(x, 1); }, {0, -3}, {1, 1}},
           {"pow 0", [](T x) { return pow(x, 0); }, {0, 2}, {0, 0}},
           {"a power of 0",
            [](T x) { return pow(x, tensor({0.0, 2.0, 1.0})); },
            {0, 0, 0},
            {0, 0, 1}},
           {"0 to a power", [](T e) { return pow(tensor({0.0, 0.0}), e); }, {0, 2}, {0, 0}},
           {"0 to a power", [](T e) { return pow(0.0, e); }, {1, 2}, {0, 0}},
           {"atan2", [](T y) { return atan2(y, tensor({0.0, 1.0})); }, {0, 0}, {0, 1}},
           {"xlogy", [](T a) { return xlogy(a, tensor({0.0, 1.0})); }, {0, 0}, {0, 0}},
           // PyTorch's values.
           {"hardswish", hardswish, kinks, {0, 1, 0.5, 1.0 / 3 + 0.5, -1.0 / 3 + 0.5, 1, 1}},
           {"hardsigmoid", hardsigmoid, kinks, {0, 0, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0, 0}},
           {"hardtanh", [](T x) { return hardtanh(x); }, kinks, {0, 0, 1, 0, 0, 0, 1}},
           {"relu6", relu6, kinks, {0, 1, 0, 1, 0, 0, 1}},
           {"leaky_relu",
            [](T x) { return leaky_relu(x, 0.25); },
            kinks,
            {0.25, 1, 0.25, 1, 0.25, 1, 0.25}},
           {"clamp", [](T x) { return clamp(x, -1, 3); }, kinks, {0, 0, 1, 1, 0, 0, 0}},
           {"clamp from below", [](T x) { return clamp(x, -1); }, kinks, {0, 1, 1, 1, 0, 1, 0}},
           {"clamp from above",
            [](T x) { return clamp(x, std::nullopt, 3); },
            {-kInf, kInf},
            {1, 0}}}) {
    INFO(c.name);
    check_same(tensor(gradient_at(c.f, c.at)), c.want);
  }
  CHECK(gradient_at([](T x) { return amax(x.reshape({2, 3}), {1}); }, {3, 1, 3, 2, 2, 2}).at(3) ==
        Approx(1.0 / 3));
  // The second gradient of a power of 0 is 0, also at 0.
  const Tensor base = tensor({2.0, 0.0, 3.0}).requires_grad_(), e = tensor({0, 0, 2}).to(kUInt8);
  const Tensor first = pulled(pow(base, e), {base}, ones({3}), true)[0];
  check_lists({{first, {0, 0, 6}}, {pulled(first, {base}, ones({3}))[0], {0, 0, 2}}});
  // Two equal operands each receive half.
  const Tensor a = tensor({1.0, 2.0, 5.0}).requires_grad_(),
               b = tensor({1.0, 3.0, 4.0}).requires_grad_();
  const std::vector<Tensor> up = grad(maximum(a, b).sum(), {a, b}),
                            down = grad(minimum(a, b).sum(), {a, b});
  check_lists(
      {{up[0], {0.5, 0, 1}}, {up[1], {0.5, 1, 0}}, {down[0], {0.5, 1, 0}}, {down[1], {0.5, 0, 1}}});
}

TEST_CASE("special values: questions about numbers, and 0 times a logarithm", "[special]") {
  for (const DType t : floating_dtypes()) {
    const Tensor x = tensor({kInf, -kInf, kNan, 0.0, -0.0}, {.dtype = t});
    check_bools({{isnan(x), {false, false, true, false, false}},
                 {isinf(x), {true, true, false, false, false}},
                 {isfinite(x), {false, false, false, true, true}},
                 {logical_not(x), {false, false, false, true, true}},
                 {logical_and(x, x), {true, true, true, false, false}}});
  }
  check_same(xlogy(tensor({0.0, 0.0, 0.0}), tensor({0.0, kInf, kNan})), {0, 0, kNan});
}

}  // namespace braid::test::on_device
