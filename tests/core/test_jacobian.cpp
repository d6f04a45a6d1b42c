// vjp, jvp, jacobian, hessian, hvp, and gradcheck.
#include <braid/core/jacobian.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor of(const std::vector<double>& v) {
  return tensor(v, {.device = here(), .dtype = DType::float64});
}

/// y_0 = x_0 x_1, y_1 = x_1², y_2 = sin x_0
Tensor curve(T x) { return stack({x[0] * x[1], x[1] * x[1], sin(x[0])}); }

/// An op with a wrong gradient: of its second element, twice the right one.
Tensor wrong_square(T x) {
  Tensor y;
  {
    const NoGrad guard;
    y = x * x;
  }
  if (!needs_grad({x})) return y;
  return record("wrong_square", {x}, y, [x = SavedTensor(x)](T dy) -> Grads {
    const Tensor factor = ones_like(x.get());
    factor[1].fill_(2);
    return {2 * x.get() * dy * factor};
  });
}

/// An op whose gradient is right but was not recorded: its second gradient is wrong.
Tensor half_recorded(T x) {
  Tensor y;
  {
    const NoGrad guard;
    y = x * x;
  }
  if (!needs_grad({x})) return y;
  return record("half_recorded", {x}, y,
                [x = SavedTensor(x)](T dy) -> Grads { return {2 * x.get().detach() * dy}; });
}

}  // namespace

TEST_CASE("jacobian: products and the matrix, against a known function", "[autograd][jacobian]") {
  const double a = 0.5, b = 3;
  const Tensor x = of({a, b});
  check_same(jacobian(curve, x).flatten(), {b, a, 0, 2 * b, std::cos(a), 0});
  CHECK(jacobian(curve, x).shape() == Shape{3, 2});
  const auto [y, pulled_back] = vjp(curve, x, of({1, 10, 100}));
  check_same(y, {a * b, b * b, std::sin(a)});
  check_same(pulled_back, {b + 100 * std::cos(a), a + 20 * b});
  const auto [z, pushed] = jvp(curve, x, of({1, 10}));
  check_same(z, {a * b, b * b, std::sin(a)});
  check_same(pushed, {b + 10 * a, 20 * b, std::cos(a)});
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(pushed.requires_grad());
  const auto cubes = [](T t) { return (t * t * t).sum(); };
  check_same(hessian(cubes, x).flatten(), {6 * a, 0, 0, 6 * b});
  check_same(hvp(cubes, x, of({1, 10})).second, {6 * a, 60 * b});
  check_same(vjp(cubes, x).second, {3 * a * a, 3 * b * b});
}

TEST_CASE("jacobian: several inputs and outputs, and a part that is not used",
          "[autograd][jacobian]") {
  const Tensor x = of({2, 3}), w = of({5});
  const auto two = [](T s, T t) { return std::vector<Tensor>{s * t, exp(s)}; };
  const std::vector<std::vector<Tensor>> all = jacobian(two, {x, w});
  REQUIRE(all.size() == 2);
  check_same(all[0][0].flatten(), {5, 0, 0, 5});
  check_same(all[0][1].flatten(), {2, 3});
  check_same(all[1][1].flatten(), {0, 0});
  CHECK(all[1][1].shape() == Shape{2, 1});
  const std::vector<Tensor> one =
      jacobian([](const std::vector<Tensor>& t) { return t[0].sum() * t[1]; }, {x, w});
  check_same(one[1].flatten(), {5});
  const auto products = [](T s, T t) { return (s * s).sum() * t.sum(); };
  const std::vector<std::vector<Tensor>> second = hessian(products, {x, w});
  check_same(second[0][0].flatten(), {10, 0, 0, 10});
  check_same(second[0][1].flatten(), {4, 6});
  check_same(second[1][0].flatten(), {4, 6});
  check_same(second[1][1].flatten(), {0});
  CHECK(jacobian([](T t) { return t.slice(0, 0, 0); }, x).shape() == Shape{0, 2});
}

TEST_CASE("jacobian: create_graph gives results that can be differentiated",
          "[autograd][jacobian]") {
  const Tensor x = of({2, 3}).requires_grad_();
  const Tensor j = jacobian([](T t) { return t * t * t; }, x, true);
  check_same(grad(j.sum(), {x})[0], {12, 18});
  CHECK_FALSE(x.grad().defined());
  const auto [y, g] = vjp([](T t) { return (t * t * t).sum(); }, x, {}, true);
  check_same(grad(g.sum(), {x})[0], {12, 18});
  // one tensor given twice is two inputs
  const Tensor two = of({2}).requires_grad_();
  const auto f = [](T a, T b) { return (a * b * b).sum(); };
  for (const bool create_graph : {false, true}) {
    const std::vector<Tensor> both = jacobian(f, {two, two}, create_graph);
    check_same(both[0].flatten(), {4});
    check_same(both[1].flatten(), {8});
    const std::vector<std::vector<Tensor>> second = hessian(f, {two, two}, create_graph);
    check_same(second[0][0].flatten(), {0});
    check_same(second[0][1].flatten(), {4});
    check_same(second[1][1].flatten(), {4});
    if (create_graph) check_same(grad(both[0].sum() + both[1].sum(), {two})[0], {12});
  }
}

TEST_CASE("jacobian: what is refused", "[autograd][jacobian]") {
  const Tensor x = of({2, 3});
  CHECK_THROWS_TEXT(ShapeError, "vjp: expected a vector of shape [3] for output 0, got [2]",
                    (void)vjp(curve, x, x));
  CHECK_THROWS_TEXT(ShapeError, "vjp without a vector: expected*[3]", (void)vjp(curve, x));
  CHECK_THROWS_TEXT(ShapeError, "hessian: expected*one element, got shape [3]",
                    (void)hessian(curve, x));
  CHECK_THROWS_TEXT(ArgumentError, "expected 2 inputs*got 1",
                    (void)jacobian([](T a, T b) { return a + b; }, std::vector<Tensor>{x}));
  CHECK_THROWS_TEXT(DTypeError, "jacobian: expected floating-point inputs, got int64",
                    (void)jacobian(curve, x.to(DType::int64)));
  CHECK_THROWS_TEXT(ArgumentError, "jvp: expected 1 vectors*got 2",
                    (void)jvp(curve, std::vector<Tensor>{x}, {x, x}));
}

TEST_CASE("gradcheck: finds a wrong gradient of a custom op and says where",
          "[autograd][gradcheck]") {
  const Tensor x = of({1.5, -2, 3}).requires_grad_(), w = of({0.5, 1, 2}).requires_grad_();
  CHECK(gradcheck([](T t) { return t * t; }, {x}));
  CHECK(gradcheck([](T a, T b) { return std::vector<Tensor>{a * b, exp(b)}; }, {x, w}));
  CHECK(gradgradcheck([](T a, T b) { return a * sin(b); }, {x, w}));
  CHECK(gradcheck([](T a, T b) { return a * b; }, {x, w.detach()}));
  CHECK_THROWS_TEXT(AutogradError,
                    "gradcheck: d output 0 [1] / d input 0 [1]: expected -4*by differences*-8",
                    gradcheck(wrong_square, {x}));
  CHECK_FALSE(gradcheck(wrong_square, {x}, {.raise_exception = false}));
  CHECK(gradcheck(half_recorded, {x}));
  CHECK_THROWS_TEXT(AutogradError, "d output 0 [0] / d input 0 [0]: expected*got 0",
                    gradgradcheck(half_recorded, {x}));
  CHECK_THROWS_TEXT(DTypeError, "expected float64 inputs*got float32 (input 0)",
                    gradcheck(wrong_square, {x.detach().to(DType::float32).requires_grad_()}));
  CHECK_THROWS_TEXT(ArgumentError, "expected an input that requires a gradient",
                    gradcheck(wrong_square, {x.detach()}));
  CHECK_FALSE(x.grad().defined());
}

}  // namespace braid::test::on_device
