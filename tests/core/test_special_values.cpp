// Tests of subgradients at kinks, gradients at zeros and next to NaN, and special values of
// activations and clamp.
#include "reference/activations.hpp"
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
  const auto rows = [](T x) { return max(x.reshape({2, 2}), {1}); };
  for (const Case& c : std::vector<Case>{
           {"abs", abs, steps, {-1, 0, 1}},
           {"relu", relu, steps, {0, 0, 1}},
           {"sign", sign, steps, {0, 0, 0}},
           {"floor", [](T x) { return floor(mul(x, 2)); }, {0.3, 1.7}, {0, 0}},
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
  CHECK(gradient_at([](T x) { return max(x.reshape({2, 3}), {1}); }, {3, 1, 3, 2, 2, 2}).at(3) ==
        Approx(1.0 / 3));
  // Two equal operands each receive half.
  const Tensor a = tensor({1.0, 2.0, 5.0}).requires_grad_(),
               b = tensor({1.0, 3.0, 4.0}).requires_grad_();
  const std::vector<Tensor> up = grad(maximum(a, b).sum(), {a, b}),
                            down = grad(minimum(a, b).sum(), {a, b});
  check_lists(
      {{up[0], {0.5, 0, 1}}, {up[1], {0.5, 1, 0}}, {down[0], {0.5, 1, 0}}, {down[1], {0.5, 0, 1}}});
}

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

TEST_CASE("functions: integers divide and are left with remainders as Python's do, and wrap around",
          "[functions]") {
  const Tensor a = tensor({7, -7, 7, -7, 6, 0}), b = tensor({2, 2, -2, -2, -3, 5}),
               least = tensor({kMin});
  check_whole({{floor_divide(a, b), {3, -4, -4, 3, -2, 0}},
               {remainder(a, b), {1, 1, -1, -1, 0, 0}},
               {fmod(a, b), {1, -1, 1, -1, 0, 0}},
               {floor_divide(least, -1), {kMin}},
               {remainder(least, -1), {0}},
               {pow(tensor({2, 3, -2, -1, 1, 0, 2}), tensor({63, 4, 3, -3, -5, 0, -1})),
                {kMin, 81, -8, -1, 1, 1, 0}}});
  using F = Tensor (*)(T, T);
  for (const F f :
       {static_cast<F>(fmod), static_cast<F>(remainder), static_cast<F>(floor_divide)}) {
    CHECK_THROWS_AS(awaited(f(a, zeros({6}, {.dtype = DType::int64}))), ArgumentError);
    CHECK(std::isnan(f(tensor({0.0}), tensor({0.0})).item<double>()));
  }
}

TEST_CASE("activations: every size, and numbers far from 0", "[activations]") {
  struct Case {
    const char* name;
    std::function<Tensor(T)> call;
    std::function<double(double)> expected;
  };
  const std::vector<Case> cases{
      {"gelu", [](T x) { return gelu(x); }, reference::gelu},
      {"gelu tanh", [](T x) { return gelu(x, "tanh"); }, reference::gelu_tanh},
      {"silu", silu, reference::silu},
      {"softplus", [](T x) { return softplus(x); },
       [](double x) { return reference::softplus(x); }},
      {"elu", [](T x) { return elu(x); }, [](double x) { return reference::elu(x, 1); }},
      {"hardswish", hardswish, reference::hardswish},
      {"mish", mish, reference::mish},
      {"logsigmoid", logsigmoid, reference::logsigmoid},
      {"softsign", softsign, reference::softsign}};
  for (const Case& c : cases) {
    for (const DType t : floating_dtypes())
      for (const std::int64_t n :
           {1, 7, 8, 16, 17, 33, 511, 513, static_cast<int>(cut(40000, 1025))}) {
        const Tensor x = random_tensor({n}, t, here(), static_cast<std::uint64_t>(n), -9, 9);
        INFO(c.name << " of " << n << ' ' << t);
        CHECK(close(c.call(x), reference::map(array_of(x), c.expected), tolerance(t)) == "");
      }
    CHECK(std::isnan(list(c.call(tensor({kNan, kInf})))[0]));
  }
  const Tensor far = tensor({80.0, -80.0, 200.0, -200.0});
  for (const Tensor& y : {silu(far), softplus(far), mish(far), gelu(far)})
    check_same(y.slice(0, 0, 3, 2), {80, 200});
  CHECK(silu(far)[1].item<double>() == Approx(reference::silu(-80)).epsilon(1e-6));
  CHECK(softplus(far)[1].item<double>() == Approx(reference::softplus(-80)).epsilon(1e-6));
  check_same(logsigmoid(far).slice(0, 1, 4, 2), {-80, -200});
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
