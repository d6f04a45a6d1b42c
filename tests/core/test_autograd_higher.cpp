// Gradients of gradients.
#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "support/child.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

Tensor derivative(const Tensor& y, const Tensor& x) { return grad(y.sum(), {x}, true, true)[0]; }

Tensor at(double v) { return tensor({v}, {.dtype = DType::float64}).requires_grad_(); }

}  // namespace

TEST_CASE("higher: many derivatives of one variable", "[autograd][higher]") {
  const double x0 = 0.7;
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> f;
    std::vector<double> derivatives;
  };
  const double e = std::exp(x0), s = std::sin(x0), c = std::cos(x0), t = std::tanh(x0),
               d = 1 - t * t, g = 1 / (1 + std::exp(-x0));
  const std::vector<Case> cases{
      {"x^4",
       [](const Tensor& x) { return pow(x, 4); },
       {4 * x0 * x0 * x0, 12 * x0 * x0, 24 * x0, 24, 0}},
      {"x x x", [](const Tensor& x) { return x * x * x; }, {3 * x0 * x0, 6 * x0, 6, 0}},
      {"exp", [](const Tensor& x) { return exp(x); }, {e, e, e, e, e}},
      {"sin", [](const Tensor& x) { return sin(x); }, {c, -s, -c, s, c}},
      {"cos", [](const Tensor& x) { return cos(x); }, {-s, -c, s, c}},
      {"log",
       [](const Tensor& x) { return log(x); },
       {1 / x0, -1 / (x0 * x0), 2 / std::pow(x0, 3), -6 / std::pow(x0, 4)}},
      {"1 / x",
       [](const Tensor& x) { return 1.0 / x; },
       {-1 / (x0 * x0), 2 / std::pow(x0, 3), -6 / std::pow(x0, 4)}},
      {"reciprocal",
       [](const Tensor& x) { return reciprocal(x); },
       {-1 / (x0 * x0), 2 / std::pow(x0, 3), -6 / std::pow(x0, 4)}},
      {"sqrt",
       [](const Tensor& x) { return sqrt(x); },
       {0.5 * std::pow(x0, -0.5), -0.25 * std::pow(x0, -1.5), 0.375 * std::pow(x0, -2.5)}},
      {"rsqrt",
       [](const Tensor& x) { return rsqrt(x); },
       {-0.5 * std::pow(x0, -1.5), 0.75 * std::pow(x0, -2.5), -1.875 * std::pow(x0, -3.5)}},
      {"tanh", [](const Tensor& x) { return tanh(x); }, {d, -2 * t * d, d * (6 * t * t - 2)}},
      {"sigmoid",
       [](const Tensor& x) { return sigmoid(x); },
       {g * (1 - g), g * (1 - g) * (1 - 2 * g), g * (1 - g) * (1 - 6 * g + 6 * g * g)}},
      {"square", [](const Tensor& x) { return square(x); }, {2 * x0, 2, 0}},
      {"x / (1 + x)",
       [](const Tensor& x) { return x / (x + 1.0); },
       {std::pow(1 + x0, -2), -2 * std::pow(1 + x0, -3), 6 * std::pow(1 + x0, -4)}},
      {"abs", [](const Tensor& x) { return abs(x) * x; }, {2 * x0, 2}},
      {"relu", [](const Tensor& x) { return relu(x) * x; }, {2 * x0, 2}},
      {"maximum", [](const Tensor& x) { return maximum(x, x * 0.5) * x; }, {2 * x0, 2}},
      {"mean square",
       [](const Tensor& x) { return mse_loss(x, zeros({1}, {.dtype = DType::float64})) * x; },
       {3 * x0 * x0, 6 * x0, 6}},
      {"matmul",
       [](const Tensor& x) { return matmul(x.reshape({1, 1}), x.reshape({1, 1})) * x; },
       {3 * x0 * x0, 6 * x0, 6}},
      {"linear",
       [](const Tensor& x) { return linear(x.reshape({1, 1}), x.reshape({1, 1}), x) * x; },
       {3 * x0 * x0 + 2 * x0, 6 * x0 + 2, 6}},
      {"linear_relu",
       [](const Tensor& x) { return linear_relu(x.reshape({1, 1}), x.reshape({1, 1}), x) * x; },
       {3 * x0 * x0 + 2 * x0, 6 * x0 + 2, 6}},
  };
  for (const Case& k : cases) {
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
  const auto third = [](auto f) {
    return function_of([f](const Tensor& x) {
      const Tensor first = grad(f(x).sum(), {x}, true, true)[0];
      return grad((first * first).sum(), {x}, true, true)[0];
    });
  };
  const Tensor x = random_tensor({2, 3}, DType::float64, {}, 8).requires_grad_();
  CHECK(gradcheck(third([](const Tensor& t) { return softmax(t) * t; }), {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return log_softmax(t, 0) * t; }), {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return cross_entropy(t, tensor({0, 2})) * t; }),
                  {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return tanh(matmul(t, t.t())); }), {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return sigmoid(linear(t, t, t.select(1, 0))); }),
                  {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return exp(t.mean({0}, true)) * t; }), {x}) == "");
  CHECK(gradcheck(third([](const Tensor& t) { return max(t, {1}, true) * t * t; }), {x}) == "");
}

TEST_CASE("higher: a gradient penalty", "[autograd][higher]") {
  // The loss is the squared norm of the gradient by the input: d/dw of |w|² Σ is exact.
  const Tensor w = random_tensor({1, 4}, DType::float64).requires_grad_(),
               x = random_tensor({3, 4}, DType::float64, {}, 2).requires_grad_();
  const Tensor y = linear(x, w);
  const Tensor dx = grad(y.sum(), {x}, false, true)[0];  // every row is w
  (dx * dx).sum().backward();
  CHECK_CLOSE(w.grad(),
              reference::generate(
                  {1, 4}, [a = array_of(w)](const Sizes& i) { return 6 * reference::value(a, i); }),
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
  // Without it the gradient is a plain number.
  const Tensor z = at(3);
  (z * z).backward();
  CHECK_FALSE(z.grad().requires_grad());
  const Tensor plain = grad(z * z, {z})[0];
  CHECK_FALSE(plain.requires_grad());
}

TEST_CASE("higher: create_graph holds under no_grad, and a graph that was freed cannot give one",
          "[autograd][higher][errors]") {
  const Tensor x = at(2);
  const Tensor y = x * x;
  {
    NoGrad guard;
    const Tensor g = grad(y, {x}, true, true)[0];
    CHECK(g.requires_grad());
    CHECK_FALSE(grad_enabled());
  }
  CHECK(grad_enabled());
  y.backward();
  CHECK_THROWS_AS(grad(y, {x}, true, true), AutogradError);
}

TEST_CASE("higher: what an op saved of its own result leads back into the graph",
          "[autograd][higher]") {
  // exp, tanh, sigmoid, sqrt, softmax keep their outputs. Under create_graph they must depend on x
  // again.
  const Tensor x = random_tensor({2, 3}, DType::float64, {}, 4, 0.5, 2).requires_grad_();
  for (Tensor (*f)(const Tensor&) :
       {static_cast<Tensor (*)(const Tensor&)>(exp), static_cast<Tensor (*)(const Tensor&)>(tanh),
        static_cast<Tensor (*)(const Tensor&)>(sigmoid),
        static_cast<Tensor (*)(const Tensor&)>(sqrt), static_cast<Tensor (*)(const Tensor&)>(rsqrt),
        static_cast<Tensor (*)(const Tensor&)>(reciprocal)}) {
    const Tensor first = derivative(f(x), x);
    CHECK(first.requires_grad());
    const Tensor second = derivative(first, x);
    CHECK(second.requires_grad());
    CHECK(array_of(derivative(second, x)).data != std::vector<double>(6, 0.0));
  }
  const Tensor s = softmax(x);
  const Tensor g = grad(std::vector<Tensor>{s}, std::vector<Tensor>{x},
                        std::vector<Tensor>{random_tensor({2, 3}, DType::float64)}, true, true)[0];
  CHECK(g.requires_grad());
}

TEST_CASE("higher: graphs with and without create_graph free their memory", "[autograd][higher]") {
  const Tensor x = random_tensor({1000}, DType::float64).requires_grad_();
  std::uint32_t references = 0;
  for (int i = 0; i < 3; ++i) {
    {
      const Tensor y = softmax(exp(x) * x).sum() + tanh(x).sum();
      const Tensor g = grad(y, {x}, true, true)[0];
      const Tensor h = grad((g * g).sum(), {x}, true, true)[0];
      CHECK(h.defined());
    }
    if (i == 0) references = x.id()->references();
    CHECK(x.id()->references() == references);
    CHECK(references == 1);  // no cycle holds the leaf
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
