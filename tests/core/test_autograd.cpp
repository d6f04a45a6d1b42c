// backward() and grad(): accumulation, recording, leaves, shared parts, unused inputs, errors.
#include <braid/core/autograd.hpp>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

std::vector<double> numbers(const Tensor& t) {
  return t.defined() ? t.to_vector<double>() : std::vector<double>{};
}

}  // namespace

TEST_CASE("autograd: leaves and what ops make", "[autograd]") {
  const Tensor x = ones({2});
  CHECK_FALSE(x.requires_grad());
  CHECK(x.is_leaf());
  CHECK_FALSE(x.grad().defined());
  CHECK(x.requires_grad_().id() == x.id());
  CHECK(x.requires_grad());
  const Tensor y = x * 2;
  CHECK(y.requires_grad());
  CHECK_FALSE(y.is_leaf());
  CHECK_FALSE((ones({2}) * 2).requires_grad());
  x.requires_grad_(false);
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE((x * 2).requires_grad());
  CHECK_THROWS_TEXT(AutogradError, "requires_grad_: expected *leaf*", y.requires_grad_(false));
  CHECK_THROWS_TEXT(DTypeError, "requires_grad_: expected *float*got *int64",
                    arange(3).requires_grad_());
  CHECK_NOTHROW(arange(3).requires_grad_(false));
}

TEST_CASE("autograd: backward adds to the gradients that are there", "[autograd]") {
  const Tensor x = tensor({1.0, 2.0, 3.0}).requires_grad_();
  (x * x).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{2, 4, 6});
  (x * 10).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{12, 14, 16});
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
  (x * 10).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{10, 10, 10});
  CHECK_FALSE(x.grad().requires_grad());
  // The gradient belongs to the leaf: changing what was passed in, or another gradient, does not
  // change it.
  const Tensor seed = ones({3}), a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  (a + b).backward(seed);
  seed.fill_(9);
  a.grad().fill_(7);
  CHECK(numbers(b.grad()) == std::vector<double>{1, 1, 1});
  const Tensor c = ones({3}).requires_grad_(), given = ones({3});
  c.backward(given);  // a leaf by itself
  CHECK(numbers(c.grad()) == std::vector<double>{1, 1, 1});
  given.fill_(9);
  CHECK(numbers(c.grad()) == std::vector<double>{1, 1, 1});
}

TEST_CASE("autograd: a gradient that cannot be written to is added to all the same", "[autograd]") {
  const Tensor a = tensor({1.0, 2.0}).requires_grad_(), b = tensor({3.0, 4.0}).requires_grad_();
  const Tensor wide = ones({1}).expand({2});
  a.set_grad(zeros({2}));
  b.set_grad(wide);
  (a * b).sum().backward();
  CHECK(numbers(a.grad()) == std::vector<double>{3, 4});
  CHECK(numbers(b.grad()) == std::vector<double>{2, 3});
  CHECK(numbers(wide) == std::vector<double>{1, 1});  // what the caller gave stays his
}

TEST_CASE("autograd: a gradient may be weighted, strided and broadcast nowhere",
          "[autograd][errors]") {
  const Tensor x = random_tensor({2, 3}).requires_grad_();
  const Tensor dy = random_tensor({3, 2}, DType::float32, {}, 2).t();
  (x * 3).backward(dy);
  CHECK_CLOSE(
      x.grad(),
      reference::generate(
          {2, 3}, [a = array_of(dy)](const Sizes& i) { return 3 * reference::value(a, i); }),
      tolerance(DType::float32));
  const Tensor y = x * 2;
  CHECK_THROWS_TEXT(ShapeError, "backward: expected *[2, 3]*got *[3]", y.backward(ones({3})));
  CHECK_THROWS_TEXT(ShapeError, "backward: ", y.backward(ones({1})));
  CHECK_THROWS_TEXT(DTypeError, "backward: expected *float32*got *float64",
                    y.backward(ones({2, 3}, {.dtype = DType::float64})));
  CHECK_THROWS_TEXT(DeviceError, here("backward: expected *cpu:0*got *cpu:1"),
                    y.backward(ones({2, 3}, {.device = there()})));
  CHECK_THROWS_TEXT(AutogradError, "backward: expected a gradient*[2, 3]*got none", y.backward());
  CHECK_NOTHROW(y.backward(ones({2, 3})));
  CHECK_NOTHROW((x * 2).sum({0, 1}, true).backward());  // one element, of rank 2
}

TEST_CASE("autograd: without anything to differentiate, backward is refused",
          "[autograd][errors]") {
  CHECK_THROWS_TEXT(AutogradError, "backward: expected *requires*grad", ones({}).backward());
  CHECK_THROWS_TEXT(AutogradError, "backward: ", arange(3).sum().backward());
  const Tensor x = ones({2}).requires_grad_();
  CHECK_THROWS_TEXT(AutogradError, "backward: ", (x * 2).detach().sum().backward());
  Tensor y;
  {
    NoGrad guard;
    y = (x * 2).sum();
  }
  CHECK_THROWS_TEXT(AutogradError, "backward: ", y.backward());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("autograd: a graph is freed by backward, unless it is kept", "[autograd][errors]") {
  const Tensor x = tensor({2.0}).requires_grad_();
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  CHECK(numbers(x.grad()) == std::vector<double>{4});
  y.backward();
  CHECK(numbers(x.grad()) == std::vector<double>{8});
  CHECK_THROWS_TEXT(AutogradError, "freed", y.backward());
  CHECK_THROWS_TEXT(AutogradError, "retain_graph", y.backward());
  CHECK(numbers(x.grad()) == std::vector<double>{8});
  // Also a part of it, through another root.
  const Tensor a = exp(x), b = a * 2, c = a * 3;
  b.backward();
  const Array before = array_of(x.grad());
  CHECK_THROWS_AS(c.backward(), AutogradError);
  CHECK_EXACT(x.grad(), before);
  CHECK_THROWS_AS(grad(y, {x}), AutogradError);
}

TEST_CASE("autograd: nodes that saved nothing can run again", "[autograd]") {
  const Tensor w = tensor({1.0, 2.0}).requires_grad_();
  const Tensor y = w + 1;
  y.sum().backward();
  y.sum().backward();
  CHECK(numbers(w.grad()) == std::vector<double>{2, 2});
  const Tensor z = ((w * 2).reshape({2, 1}) - 1).sum();
  z.backward();
  z.backward();
  CHECK(numbers(w.grad()) == std::vector<double>{6, 6});
}

TEST_CASE("autograd: no_grad and detach", "[autograd]") {
  const Tensor x = tensor({3.0}).requires_grad_();
  {
    NoGrad guard;
    CHECK_FALSE(grad_enabled());
    CHECK_FALSE((x * 2).requires_grad());
    {
      GradMode on(true);
      CHECK((x * 2).requires_grad());
    }
    CHECK_FALSE(grad_enabled());
    CHECK_FALSE(x.reshape({1, 1}).requires_grad());
  }
  CHECK(grad_enabled());
  try {
    NoGrad guard;
    throw 1;
  } catch (int) {}
  CHECK(grad_enabled());
  const Tensor d = (x * x).detach();
  CHECK_FALSE(d.requires_grad());
  CHECK(d.is_leaf());
  (x * d).sum().backward();
  CHECK(numbers(x.grad()) == std::vector<double>{9});
  const Tensor alias = x.detach();
  CHECK(alias.storage() == x.storage());
  CHECK(alias.id() != x.id());
  CHECK(x.requires_grad());
}

TEST_CASE("autograd: shared parts are counted once each way", "[autograd]") {
  const Tensor x = tensor({2.0}).requires_grad_();
  const Tensor y = x * x;      // 4
  const Tensor z = y * y + y;  // x⁴ + x²
  z.backward();
  CHECK(numbers(x.grad()) == std::vector<double>{4 * 8 + 2 * 2});
  // A diamond whose arms have very different depths.
  x.set_grad({});
  Tensor deep = x * 1;
  for (int i = 0; i < 50; ++i) deep = deep * 1.0;
  (deep + x * 5).backward();
  CHECK(numbers(x.grad()) == std::vector<double>{6});
  // 2^30 paths, 30 nodes.
  x.set_grad({});
  Tensor w = x.to(DType::float64);
  for (int i = 0; i < 30; ++i) w = w + w;
  w.backward();
  CHECK(numbers(x.grad()) == std::vector<double>{0x1p30});
}

TEST_CASE("autograd: gradients through views add up in their base", "[autograd]") {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).requires_grad_();
  (x[0] * 2 + x.slice(0, 1, 2).squeeze(0) * 3 + x.select(1, 1).expand({3, 2}).sum({0}).sum() +
   x.t()[2].sum())
      .sum()
      .backward();
  // Row 0: 2, row 1: 3; the last two terms are numbers that were broadcast over 3.
  CHECK(numbers(x.grad()) == std::vector<double>{2, 2 + 9, 2 + 3, 3, 3 + 9, 3 + 3});
  const Tensor y = ones({4}).requires_grad_();
  (y.slice(0, 0, 3) * y.slice(0, 1, 4)).sum().backward();  // overlapping
  CHECK(numbers(y.grad()) == std::vector<double>{1, 2, 2, 1});
}

TEST_CASE("autograd: only leaves get gradients, and only those that want one", "[autograd]") {
  const Tensor x = ones({2}).requires_grad_(), y = ones({2}), z = ones({2}).requires_grad_(),
               unused = ones({2}).requires_grad_();
  const Tensor mid = x * y;
  (mid * z).sum().backward();
  CHECK(x.grad().defined());
  CHECK(z.grad().defined());
  CHECK_FALSE(y.grad().defined());
  CHECK_FALSE(unused.grad().defined());
  CHECK_FALSE(mid.grad().defined());
}

TEST_CASE("autograd: grad() gives gradients and touches none", "[autograd]") {
  const Tensor x = tensor({2.0, 3.0}).requires_grad_(), y = tensor({5.0, 7.0}).requires_grad_();
  const Tensor mid = x * y;
  const Tensor z = (mid * mid).sum();
  const std::vector<Tensor> g = grad(z, {x, y, mid}, true);
  CHECK(numbers(g[0]) == std::vector<double>{2 * 10 * 5, 2 * 21 * 7});
  CHECK(numbers(g[1]) == std::vector<double>{2 * 10 * 2, 2 * 21 * 3});
  CHECK(numbers(g[2]) == std::vector<double>{20, 42});  // an inner tensor may be asked for
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(y.grad().defined());
  CHECK(numbers(grad(z, {z}, true)[0]) == std::vector<double>{1});
  CHECK(numbers(grad(z, {x, x}, true)[1]) == numbers(g[0]));  // twice the same
  // Several outputs, with weights.
  const std::vector<Tensor> h = grad(std::vector<Tensor>{mid, x * 2}, std::vector<Tensor>{x, y},
                                     std::vector<Tensor>{tensor({1.0, 0.0}), tensor({0.0, 10.0})});
  CHECK(numbers(h[0]) == std::vector<double>{5, 20});
  CHECK(numbers(h[1]) == std::vector<double>{2, 0});
}

TEST_CASE("autograd: grad() of an input that plays no part", "[autograd][errors]") {
  const Tensor x = tensor({2.0}).requires_grad_(), other = tensor({2.0}).requires_grad_();
  const auto y = [&] { return (x * x).sum(); };
  CHECK_THROWS_TEXT(AutogradError, "grad: expected *got an unused input of shape [1]",
                    grad(y(), {x, other}));
  const std::vector<Tensor> g =
      grad(std::vector<Tensor>{y()}, std::vector<Tensor>{x, other}, {}, false, false, true);
  CHECK(numbers(g[0]) == std::vector<double>{4});
  CHECK_FALSE(g[1].defined());
  CHECK_THROWS_AS(grad(y(), {ones({1})}), AutogradError);  // does not require a gradient
  CHECK_THROWS_AS(grad(ones({}), {x}), AutogradError);
  // more than one element, no weights
  CHECK_THROWS_AS(grad(x * x * ones({2}), {x}), AutogradError);
  CHECK_THROWS_AS(
      grad(std::vector<Tensor>{y(), y()}, std::vector<Tensor>{x}, std::vector<Tensor>{ones({})}),
      ArgumentError);
  CHECK_THROWS_AS(grad(y(), {Tensor()}), Error);
}

TEST_CASE("autograd: backward from several roots at once", "[autograd]") {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  const Tensor mid = x * x;
  backward(std::vector<Tensor>{mid.sum(), (mid * 3).sum(), x * 1.0},
           std::vector<Tensor>{Tensor(), Tensor(), tensor({100.0, 200.0})});
  CHECK(numbers(x.grad()) == std::vector<double>{8 + 100, 16 + 200});
  backward(std::vector<Tensor>{x.sum(), x.sum()});
  CHECK(numbers(x.grad()) == std::vector<double>{110, 218});
}

TEST_CASE("autograd: set_grad takes what fits", "[autograd][errors]") {
  const Tensor x = ones({2, 3}).requires_grad_();
  const Tensor g = full({2, 3}, 5);
  x.set_grad(g);
  CHECK(x.grad().id() == g.id());
  (x * 2).sum().backward();
  CHECK_EXACT(x.grad(), Array({2, 3}, 7.0));
  CHECK_THROWS_TEXT(ShapeError, "set_grad: expected *[2, 3]*got *[3]", x.set_grad(ones({3})));
  CHECK_THROWS_TEXT(DTypeError, "set_grad: expected *float32*got *float64",
                    x.set_grad(ones({2, 3}, {.dtype = DType::float64})));
  CHECK_THROWS_TEXT(DeviceError, here("set_grad: expected *cpu:0*got *cpu:1"),
                    x.set_grad(ones({2, 3}, {.device = there()})));
  CHECK_EXACT(x.grad(), Array({2, 3}, 7.0));
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("autograd: an op of one's own", "[autograd]") {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_(), w = tensor({3.0, 4.0});
  int calls = 0;
  bool wants_x = false, wants_w = true;
  const Tensor y =
      record("twice", {x, w}, x.detach() * 2.0, [&](const Tensor& dy, Needs needs) -> Grads {
        ++calls;
        wants_x = needs[0];
        wants_w = needs[1];
        return {dy * 2.0, Tensor()};
      });
  y.sum().backward();
  CHECK(calls == 1);
  CHECK(wants_x);
  CHECK_FALSE(wants_w);
  CHECK(numbers(x.grad()) == std::vector<double>{2, 2});
  // Two outputs, of which one is used: the other's gradient is undefined; an output of integers has
  // no history.
  std::vector<bool> defined;
  const std::vector<Tensor> in{x}, out{x.detach() * 3.0, x.detach() * 5.0, arange(2)};
  record_many("both", in, out, x.device(), [&](std::span<const Tensor> dys) -> Grads {
    for (const Tensor& d : dys) defined.push_back(d.defined());
    return {dys[0] * 3.0};
  });
  CHECK(out[1].requires_grad());
  CHECK_FALSE(out[2].requires_grad());
  x.set_grad({});
  out[0].sum().backward();
  CHECK(defined == std::vector<bool>{true, false, false});
  CHECK(numbers(x.grad()) == std::vector<double>{3, 3});
}

TEST_CASE("autograd: a wrong gradient from an op of one's own is refused", "[autograd][errors]") {
  const auto with = [](const Tensor& wrong) {
    const Tensor x = ones({2, 3}).requires_grad_();
    const Tensor y = record("mine", {x}, x.detach() * 2.0,
                            [wrong](const Tensor&) -> Grads { return {Tensor(wrong)}; });
    y.sum().backward();
    return x.grad();
  };
  CHECK_THROWS_AS(with(ones({3, 2})), Error);
  CHECK_THROWS_AS(with(ones({2, 3}, {.dtype = DType::float64})), Error);
  CHECK_THROWS_AS(with(ones({2, 3}, {.device = there()})), Error);
  CHECK_FALSE(with(Tensor()).defined());  // "none"
}

}  // namespace braid::test::on_device
