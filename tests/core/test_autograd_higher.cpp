// Tests of higher-order gradients.
#include "reference/elementwise.hpp"
#include "shorthand.hpp"
#include "support/child.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

Tensor derivative(T y, T x) { return grad(y.sum(), {x}, true, true)[0]; }
Tensor at(double v) { return tensor({v}, {.dtype = DType::float64}).requires_grad_(); }

}  // namespace

TEST_CASE("higher: many derivatives of one variable", "[autograd][higher]") {
  const double x0 = 0.7, e = std::exp(x0), s = std::sin(x0), c = std::cos(x0), t = std::tanh(x0),
               d = 1 - t * t, g = 1 / (1 + std::exp(-x0));
  struct Case {
    const char* name;
    std::function<Tensor(T)> f;
    List derivatives;
  };
  const auto power = [x0](double factor, double exponent) {
    return factor * std::pow(x0, exponent);
  };
  const auto flat = [](T x) { return x.reshape({1, 1}); };
  const List square{2 * x0, 2}, cube{3 * x0 * x0, 6 * x0, 6},
      inverse{power(-1, -2), power(2, -3), power(-6, -4)},
      layer{3 * x0 * x0 + 2 * x0, 6 * x0 + 2, 6};
  for (const Case& k : std::vector<Case>{
           {"x^4", [](T x) { return pow(x, 4); }, {power(4, 3), power(12, 2), 24 * x0, 24, 0}},
           {"x x x", [](T x) { return x * x * x; }, {3 * x0 * x0, 6 * x0, 6, 0}},
           {"exp", exp, {e, e, e, e, e}},
           {"sin", sin, {c, -s, -c, s, c}},
           {"cos", cos, {-s, -c, s, c}},
           {"log", log, {1 / x0, power(-1, -2), power(2, -3), power(-6, -4)}},
           {"1 / x", [](T x) { return 1.0 / x; }, inverse},
           {"reciprocal", reciprocal, inverse},
           {"sqrt", sqrt, {power(0.5, -0.5), power(-0.25, -1.5), power(0.375, -2.5)}},
           {"rsqrt", rsqrt, {power(-0.5, -1.5), power(0.75, -2.5), power(-1.875, -3.5)}},
           {"tanh", tanh, {d, -2 * t * d, d * (6 * t * t - 2)}},
           {"sigmoid",
            sigmoid,
            {g * (1 - g), g * (1 - g) * (1 - 2 * g), g * (1 - g) * (1 - 6 * g + 6 * g * g)}},
           {"square", braid::square, {2 * x0, 2, 0}},
           {"x / (1 + x)",
            [](T x) { return x / (x + 1.0); },
            {std::pow(1 + x0, -2), -2 * std::pow(1 + x0, -3), 6 * std::pow(1 + x0, -4)}},
           {"abs", [](T x) { return abs(x) * x; }, square},
           {"relu", [](T x) { return relu(x) * x; }, square},
           {"maximum", [](T x) { return maximum(x, x * 0.5) * x; }, square},
           {"mean square",
            [](T x) { return mse_loss(x, zeros({1}, {.dtype = DType::float64})) * x; }, cube},
           {"matmul", [&](T x) { return matmul(flat(x), flat(x)) * x; }, cube},
           {"linear", [&](T x) { return linear(flat(x), flat(x), x) * x; }, layer},
           {"linear_relu", [&](T x) { return linear_relu(flat(x), flat(x), x) * x; }, layer},
           {"linear_add", [&](T x) { return linear_add(flat(x), flat(x), {}, flat(x)) * x; },
            layer},
       }) {
    const Tensor x = at(x0);
    Tensor y = k.f(x);
    for (std::size_t order = 0; order < k.derivatives.size(); ++order) {
      INFO(k.name << ", derivative " << order + 1);
      if (!y.requires_grad()) {  // a constant
        CHECK(k.derivatives[order] == 0);
        break;
      }
      const std::vector<Tensor> dy =
          grad(std::vector<Tensor>{y.sum()}, std::vector<Tensor>{x}, {}, true, true, true);
      y = dy[0].defined() ? dy[0] : zeros({1}, {.dtype = DType::float64});
      CHECK(y.item<double>() == Approx(k.derivatives[order]).epsilon(1e-9).margin(1e-12));
    }
  }
}

TEST_CASE("higher: third derivatives agree with differences of the second", "[autograd][higher]") {
  const Tensor x = random_tensor({2, 3}, DType::float64, {}, 8).requires_grad_();
  const std::function<Tensor(T)> functions[] = {
      [](T t) { return softmax(t) * t; },
      [](T t) { return log_softmax(t, 0) * t; },
      [](T t) { return cross_entropy(t, tensor({0, 2})) * t; },
      [](T t) { return tanh(matmul(t, t.t())); },
      [](T t) { return sigmoid(linear(t, t, t.select(1, 0))); },
      [](T t) { return linear_gelu(t, t, t.select(1, 0)) * t.select(1, 1); },
      [](T t) { return linear_gelu(t, t, t.select(1, 0), "tanh") * t.select(1, 1); },
      [](T t) { return linear(linear_gelu(t, t), t.t()); },
      [](T t) { return linear_add(t * t, t, {}, tanh(linear(t, t))); },
      [](T t) { return exp(t.mean({0}, true)) * t; },
      [](T t) { return amax(t, {1}, true) * t * t; }};
  for (const auto& f : functions) {
    INFO("function " << &f - functions);
    const auto third = [&](T t) {
      const Tensor first = derivative(f(t), t);
      return derivative(first * first, t);
    };
    CHECK(gradient_difference(function_of(third), {x}) == "");
  }
}

TEST_CASE("higher: a gradient penalty", "[autograd][higher]") {
  // The loss is the squared norm of the gradient by x, 3 |w|²; its derivative by w is known
  // exactly.
  const Tensor w = random_tensor({1, 4}, DType::float64).requires_grad_(),
               x = random_tensor({3, 4}, DType::float64, {}, 2).requires_grad_();
  const Tensor y = linear(x, w);
  const Tensor dx = grad(y.sum(), {x}, false, true)[0];  // every row is w
  (dx * dx).sum().backward();
  CHECK_CLOSE(w.grad(), reference::map(array_of(w), [](double v) { return 6 * v; }),
              tolerance(DType::float64));
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("higher: backward with create_graph leaves gradients that can be differentiated",
          "[autograd][higher]") {
  const Tensor x = at(3);
  (x * x * x).backward({}, true, true);
  const Tensor g = x.grad();
  CHECK(g.item<double>() == 27);
  REQUIRE(g.requires_grad());
  x.set_grad({});
  g.backward();
  CHECK(x.grad().item<double>() == 18);
  CHECK_FALSE(x.grad().requires_grad());
  // Without create_graph the gradient has no graph.
  const Tensor z = at(3);
  (z * z).backward();
  CHECK_FALSE((z.grad().requires_grad() || grad(z * z, {z})[0].requires_grad()));
}

TEST_CASE("higher: two leaves never share a gradient's memory", "[autograd][higher]") {
  for (const bool create_graph : {false, true}) {
    const Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
    ((a + b) * tensor({1.0, 2.0, 3.0})).sum().backward({}, false, create_graph);
    CHECK_FALSE(a.grad().storage() == b.grad().storage());
    {
      const NoGrad guard;
      a.grad().mul_(2);
    }
    CHECK(list(b.grad()) == List{1, 2, 3});
    for (const Tensor& t : {a, b}) t.set_grad({});
  }
}

TEST_CASE("higher: create_graph holds under no_grad, and a graph that was freed cannot give one",
          "[autograd][higher][errors]") {
  const Tensor x = at(2), y = x * x;
  {
    NoGrad guard;
    CHECK(grad(y, {x}, true, true)[0].requires_grad());
    CHECK_FALSE(grad_enabled());
  }
  CHECK(grad_enabled());
  y.backward();
  CHECK_THROWS_AS(grad(y, {x}, true, true), AutogradError);
}

TEST_CASE("higher: graphs with and without create_graph free their memory", "[autograd][higher]") {
  const Tensor x = random_tensor({1000}, DType::float64).requires_grad_();
  for (int i = 0; i < 3; ++i) {
    {
      const Tensor y = softmax(exp(x) * x).sum() + tanh(x).sum();
      const Tensor g = derivative(y, x), h = derivative(g * g, x);
      CHECK(h.defined());
    }
    CHECK(x.id()->references() == 1);  // the leaf is in no reference cycle
  }
}

TEST_CASE("child: backward with create_graph warns, once", "[.child][create-graph]") {
  std::vector<std::string> warnings;
  set_warning_handler([&](std::string_view text) { warnings.emplace_back(text); });
  const Tensor x = at(3);
  (x * x).backward();
  (void)grad(x * x, {x}, true, true);
  CHECK(warnings.empty());
  for (int i = 0; i < 2; ++i) {
    (x * x).backward({}, true, true);
    x.set_grad({});
  }
  set_warning_handler({});
  REQUIRE(warnings.size() == 1);
  CHECK(
      matches(warnings[0],
              "backward with create_graph = true makes a cycle*set_grad({})*grad(outputs, inputs"));
}
TEST_CASE("higher: backward with create_graph warns that it makes a cycle", "[autograd][higher]") {
  CHECK_CHILD("-u NOTHING", "[.child][create-graph]");
}

}  // namespace braid::test::on_device
