// Tests of backward() and grad(): accumulation, recording, leaves, shared parts, unused inputs,
// errors.
#include "reference/elementwise.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor leaf(const Literal& numbers) { return on_device::tensor(numbers, {.requires_grad = true}); }

}  // namespace

TEST_CASE("autograd: leaves and what ops make", "[autograd]") {
  const Tensor x = ones({2});
  CHECK((!x.requires_grad() && x.is_leaf() && !x.grad().defined()));
  CHECK(x.requires_grad_().id() == x.id());
  CHECK(x.requires_grad());
  const Tensor y = x * 2;
  CHECK((y.requires_grad() && !y.is_leaf()));
  CHECK_FALSE((ones({2}) * 2).requires_grad());
  x.requires_grad_(false);
  CHECK_FALSE((x.requires_grad() || (x * 2).requires_grad()));
  CHECK_THROWS_TEXT(AutogradError, "requires_grad_: expected *leaf*", y.requires_grad_(false));
  CHECK_THROWS_TEXT(DTypeError, "requires_grad_: expected *float*got *int64",
                    arange(3).requires_grad_());
  CHECK_NOTHROW(arange(3).requires_grad_(false));
}

TEST_CASE("autograd: backward adds to the gradients that are there", "[autograd]") {
  const Tensor x = leaf({1.0, 2.0, 3.0});
  (x * x).sum().backward();
  CHECK(list(x.grad()) == List{2, 4, 6});
  (x * 10).sum().backward();
  CHECK(list(x.grad()) == List{12, 14, 16});
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
  (x * 10).sum().backward();
  CHECK(list(x.grad()) == List{10, 10, 10});
  CHECK_FALSE(x.grad().requires_grad());
  // The leaf owns its gradient: a change of the tensor that was passed in, or of another gradient,
  // does not change it.
  const Tensor seed = ones({3}), a = leaf({1.0, 1.0, 1.0}), b = leaf({1.0, 1.0, 1.0});
  (a + b).backward(seed);
  seed.fill_(9);
  a.grad().fill_(7);
  CHECK(list(b.grad()) == List{1, 1, 1});
  const Tensor c = leaf({1.0, 1.0, 1.0}), given = ones({3});
  c.backward(given);  // the root is itself a leaf
  CHECK(list(c.grad()) == List{1, 1, 1});
  given.fill_(9);
  CHECK(list(c.grad()) == List{1, 1, 1});
}

TEST_CASE("autograd: a gradient that cannot be written to is added to all the same", "[autograd]") {
  const Tensor a = leaf({1.0, 2.0}), b = leaf({3.0, 4.0}), wide = ones({1}).expand({2});
  a.set_grad(zeros({2}));
  b.set_grad(wide);
  (a * b).sum().backward();
  // the caller's tensor does not change
  check_lists({{a.grad(), {3, 4}}, {b.grad(), {2, 3}}, {wide, {1, 1}}});
}

TEST_CASE("autograd: a gradient may be weighted, strided and broadcast nowhere",
          "[autograd][errors]") {
  const Tensor x = random_tensor({2, 3}).requires_grad_();
  const Tensor dy = random_tensor({3, 2}, DType::float32, {}, 2).t();
  (x * 3).backward(dy);
  CHECK_CLOSE(x.grad(), reference::map(array_of(dy), [](double v) { return 3 * v; }),
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
  const Tensor x = ones({2}).requires_grad_();
  Tensor y;
  {
    NoGrad guard;
    y = (x * 2).sum();
  }
  for (const Tensor& root : {ones({}), arange(3).sum(), (x * 2).detach().sum(), y})
    CHECK_THROWS_TEXT(AutogradError, "backward: expected *requires*grad", root.backward());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("autograd: a graph is freed by backward, unless it is kept", "[autograd][errors]") {
  const Tensor x = leaf({2.0});
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  CHECK(list(x.grad()) == List{4});
  y.backward();
  CHECK(list(x.grad()) == List{8});
  CHECK_THROWS_TEXT(AutogradError, "freed", y.backward());
  CHECK_THROWS_TEXT(AutogradError, "retain_graph", y.backward());
  CHECK(list(x.grad()) == List{8});
  // The same for a shared part of the graph, through another root.
  const Tensor a = exp(x), b = a * 2, c = a * 3;
  b.backward();
  const Array before = array_of(x.grad());
  CHECK_THROWS_AS(c.backward(), AutogradError);
  CHECK_EXACT(x.grad(), before);
  CHECK_THROWS_AS(grad(y, {x}), AutogradError);
}

TEST_CASE("autograd: nodes that saved nothing can run again", "[autograd]") {
  const Tensor w = leaf({1.0, 2.0}), y = w + 1, z = ((w * 2).reshape({2, 1}) - 1).sum();
  for (int i = 0; i < 2; ++i) y.sum().backward();
  CHECK(list(w.grad()) == List{2, 2});
  for (int i = 0; i < 2; ++i) z.backward();
  CHECK(list(w.grad()) == List{6, 6});
}

TEST_CASE("autograd: no_grad and detach", "[autograd]") {
  const Tensor x = leaf({3.0});
  {
    NoGrad guard;
    CHECK_FALSE((grad_enabled() || (x * 2).requires_grad()));
    {
      GradMode on(true);
      CHECK((x * 2).requires_grad());
    }
    CHECK_FALSE((grad_enabled() || x.reshape({1, 1}).requires_grad()));
  }
  CHECK(grad_enabled());
  try {
    NoGrad guard;
    throw 1;
  } catch (int) {}
  CHECK(grad_enabled());
  const Tensor d = (x * x).detach(), alias = x.detach();
  CHECK((!d.requires_grad() && d.is_leaf()));
  (x * d).sum().backward();
  CHECK(list(x.grad()) == List{9});
  CHECK(alias.storage() == x.storage());
  CHECK(alias.id() != x.id());
  CHECK(x.requires_grad());
}

TEST_CASE("autograd: shared parts are counted once each way", "[autograd]") {
  // x⁴ + x²
  const auto powers = [](T x) {
    const Tensor y = x * x;
    return y * y + y;
  };
  CHECK(gradient_at(powers, {2}) == List{4 * 8 + 2 * 2});
  // A diamond whose branches have very different depths.
  const auto diamond = [](T x) {
    Tensor deep = x * 1;
    for (int i = 0; i < 50; ++i) deep = deep * 1.0;
    return deep + x * 5;
  };
  CHECK(gradient_at(diamond, {2}) == List{6});
  // 30 nodes, 2^30 paths.
  const auto doubled = [](T x) {
    Tensor w = x.to(DType::float64);
    for (int i = 0; i < 30; ++i) w = w + w;
    return w;
  };
  CHECK(gradient_at(doubled, {2}) == List{0x1p30});
}

TEST_CASE("autograd: gradients through views add up in their base", "[autograd]") {
  const auto views = [](T flat) {
    const Tensor x = flat.reshape({2, 3});
    return x[0] * 2 + x.slice(0, 1, 2).squeeze(0) * 3 +
           x.select(1, 1).expand({3, 2}).sum({0}).sum() + x.t()[2].sum();
  };
  // Row 0: 2, row 1: 3. The last two terms are scalars that are broadcast to 3 elements.
  CHECK(gradient_at(views, {1, 2, 3, 4, 5, 6}) == List{2, 2 + 9, 2 + 3, 3, 3 + 9, 3 + 3});
  const auto overlapping = [](T y) { return y.slice(0, 0, 3) * y.slice(0, 1, 4); };
  CHECK(gradient_at(overlapping, {1, 1, 1, 1}) == List{1, 2, 2, 1});
}

TEST_CASE("autograd: only leaves get gradients, and only those that want one", "[autograd]") {
  const Tensor x = leaf({1.0, 1.0}), y = ones({2}), z = leaf({1.0, 1.0}), unused = leaf({1.0});
  const Tensor mid = x * y;
  (mid * z).sum().backward();
  CHECK((x.grad().defined() && z.grad().defined()));
  CHECK_FALSE((y.grad().defined() || unused.grad().defined() || mid.grad().defined()));
  const Tensor frozen = leaf({2.0}), product = x * frozen;
  frozen.requires_grad_(false);  // after forward
  product.sum().backward();
  CHECK_FALSE(frozen.grad().defined());
}

TEST_CASE("autograd: grad() gives gradients and touches none", "[autograd]") {
  const Tensor x = leaf({2.0, 3.0}), y = leaf({5.0, 7.0});
  const Tensor mid = x * y;
  const Tensor z = (mid * mid).sum();
  const std::vector<Tensor> g = grad(z, {x, y, mid}, true);  // an intermediate tensor is valid
  check_lists(
      {{g[0], {2 * 10 * 5, 2 * 21 * 7}}, {g[1], {2 * 10 * 2, 2 * 21 * 3}}, {g[2], {20, 42}}});
  CHECK_FALSE((x.grad().defined() || y.grad().defined()));
  CHECK(list(grad(z, {z}, true)[0]) == List{1});
  CHECK(list(grad(z, {x, x}, true)[1]) == list(g[0]));  // the same input twice
  // Several outputs, with incoming gradients.
  const std::vector<Tensor> h = grad(std::vector<Tensor>{mid, x * 2}, std::vector<Tensor>{x, y},
                                     std::vector<Tensor>{tensor({1.0, 0.0}), tensor({0.0, 10.0})});
  check_lists({{h[0], {5, 20}}, {h[1], {2, 0}}});
}

TEST_CASE("autograd: grad() runs and frees only what is between", "[autograd]") {
  const Tensor x = leaf({2.0, 3.0}), w = leaf({5.0, 7.0});
  int runs = 0, of_w = 0;
  const auto product = [&](const Tensor& a, const Tensor& b) {
    Tensor y;
    {
      const NoGrad guard;
      y = a * b;
    }
    return record(
        "product", {a, b}, y,
        [&, a = SavedTensor(a), b = SavedTensor(b)](const Tensor& dy, Needs needs) -> Grads {
          ++runs, of_w += needs[1];
          return {dy * b.get(), needs[1] ? dy * a.get() : Tensor()};
        });
  };
  const Tensor h = product(x, w), y = product(h, w).sum(), side = square(h);
  CHECK(list(grad(y, {h})[0]) == List{5, 7});
  CHECK((runs == 1 && of_w == 0));  // h's own node has not run
  CHECK(list(grad(side.sum(), {x}, true)[0]) == List{2 * 10 * 5, 2 * 21 * 7});
  CHECK((runs == 2 && of_w == 0));
  CHECK_THROWS_TEXT(AutogradError, "an earlier backward freed", grad(y, {x}));  // y's product
  CHECK(list(grad(std::vector<Tensor>{side, w * 3}, std::vector<Tensor>{w},
                  std::vector<Tensor>{ones({2}), ones({2})})[0]) ==
        List{2 * 10 * 2 + 3, 2 * 21 * 3 + 3});
  CHECK((runs == 3 && of_w == 1));
  // what is behind an input may be gone
  CHECK_THROWS_TEXT(AutogradError, "an earlier backward freed", h.sum().backward());
  CHECK(list(grad((h * h).sum(), {h})[0]) == List{20, 42});
  CHECK_THROWS_TEXT(ArgumentError, "grad: expected inputs, got none", grad(h.sum(), {}));

  // below its inputs it takes no node, though another backward is using one there
  const Tensor base = x * 1.0, above = base * 3.0, end = square(above).sum();
  std::vector<double> inside;
  base.register_hook([&](T g) {
    inside = list(grad(end, {above}, true)[0]);
    return g;
  });
  (base * 2.0).sum().backward();
  CHECK(inside == List{12, 18});
}

TEST_CASE("autograd: grad() of an input that plays no part", "[autograd][errors]") {
  const Tensor x = leaf({2.0}), other = leaf({2.0});
  const auto y = [&] { return (x * x).sum(); };
  CHECK_THROWS_TEXT(AutogradError, "grad: expected *got an unused input of shape [1]",
                    grad(y(), {x, other}));
  const std::vector<Tensor> g =
      grad(std::vector<Tensor>{y()}, std::vector<Tensor>{x, other}, {}, false, false, true);
  CHECK(list(g[0]) == List{4});
  CHECK_FALSE(g[1].defined());
  CHECK_THROWS_AS(grad(y(), {ones({1})}), AutogradError);  // does not require a gradient
  CHECK_THROWS_AS(grad(ones({}), {x}), AutogradError);
  // more than one element and no incoming gradient
  CHECK_THROWS_AS(grad(x * x * ones({2}), {x}), AutogradError);
  CHECK_THROWS_AS(
      grad(std::vector<Tensor>{y(), y()}, std::vector<Tensor>{x}, std::vector<Tensor>{ones({})}),
      ArgumentError);
  CHECK_THROWS_AS(grad(y(), {Tensor()}), Error);
}

TEST_CASE("autograd: backward from several roots at once", "[autograd]") {
  const Tensor x = leaf({1.0, 2.0}), mid = x * x;
  backward(std::vector<Tensor>{mid.sum(), (mid * 3).sum(), x * 1.0},
           std::vector<Tensor>{Tensor(), Tensor(), tensor({100.0, 200.0})});
  CHECK(list(x.grad()) == List{8 + 100, 16 + 200});
  backward(std::vector<Tensor>{x.sum(), x.sum()});
  CHECK(list(x.grad()) == List{110, 218});
}

TEST_CASE("autograd: set_grad takes what fits", "[autograd][errors]") {
  const Tensor x = ones({2, 3}).requires_grad_(), g = full({2, 3}, 5.0);
  x.set_grad(g);
  CHECK(x.grad().id() == g.id());
  (x * 2).sum().backward();
  CHECK_THROWS_TEXT(ShapeError, "set_grad: expected *[2, 3]*got *[3]", x.set_grad(ones({3})));
  CHECK_THROWS_TEXT(DTypeError, "set_grad: expected *float32*got *float64",
                    x.set_grad(ones({2, 3}, {.dtype = DType::float64})));
  CHECK_THROWS_TEXT(DeviceError, here("set_grad: expected *cpu:0*got *cpu:1"),
                    x.set_grad(ones({2, 3}, {.device = there()})));
  CHECK_EXACT(x.grad(), Array({2, 3}, 7.0));
  CHECK_THROWS_TEXT(AutogradError, "set_grad: expected another tensor as the gradient, got",
                    x.set_grad(x));
  {
    const NoGrad guard;
    x.t_();
  }
  CHECK_THROWS_TEXT(AutogradError, "backward: expected a leaf whose gradient has its shape [3, 2]",
                    (x * 2).sum().backward());
  {
    const NoGrad guard;
    x.t_();
  }
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
  const Tensor y = ones({2, 3}).requires_grad_();
  x.mutable_grad() = g;
  y.mutable_grad() = x.mutable_grad();
  CHECK((x.grad().is_same(g) && y.grad().is_same(g)));
  x.mutable_grad().zero_();
  CHECK_EXACT(g, Array({2, 3}, 0.0));
  x.mutable_grad() = Tensor();
  CHECK((!x.grad().defined() && !x.mutable_grad().defined() && y.grad().is_same(g)));
  CHECK_THROWS_TEXT(ShapeError, "set_grad: expected *", x.mutable_grad() = ones({3}));
}

TEST_CASE("autograd: a custom op whose gradient is none of its input", "[autograd][errors]") {
  const Tensor x = leaf({1.0, 2.0});
  const auto refuse = [&](const Tensor& gradient) {
    // softmax's kernel reads the gradient as it reads the result
    const Tensor s = softmax(x, 0),
                 y = record("mine", {s}, s.detach() * 2.0, [&](T) -> Grads { return {gradient}; });
    CHECK_THROWS_TEXT(AutogradError,
                      "backward of mine: expected as gradient 0 a tensor of 2 elements in 1 dims, "
                      "float32, as the input is, got one of shape *",
                      y.sum().backward());
    CHECK_FALSE(x.grad().defined());
  };
  const Device d = here();
  refuse(ones({1}, {.device = d}));
  refuse(ones({2, 1}, {.device = d}));
  refuse(ones({2}, {.device = d, .dtype = DType::float64}));
}

TEST_CASE("autograd: a custom op", "[autograd]") {
  const Tensor x = leaf({1.0, 2.0}), w = tensor({3.0, 4.0});
  std::vector<Bools> wanted;
  const Tensor y = record("twice", {x, w}, x.detach() * 2.0, [&](T dy, Needs needs) -> Grads {
    wanted.push_back({needs[0], needs[1]});
    return {dy * 2.0, Tensor()};
  });
  y.sum().backward();
  CHECK(wanted == std::vector<Bools>{{true, false}});
  CHECK(list(x.grad()) == List{2, 2});
  const auto eight_ones = [](T) { return Grads(std::vector<Tensor>(8, ones({2}))); };
  const Tensor of_eight =
      record("many", {x, w, w, w, w, w, w, x}, ones({2}, {.device = x.device()}), eight_ones);
  x.set_grad({});
  of_eight.sum().backward();
  CHECK(list(x.grad()) == List{2, 2});
  CHECK_THROWS_TEXT(ArgumentError,
                    "record: expected at most 8 inputs, got 9 (many); use record_many",
                    record("many", {x, w, w, w, w, w, w, w, w}, ones({2}), eight_ones));
  // Two outputs, one of them used: the gradient of the other is undefined. An integer output has no
  // graph.
  Bools defined;
  const std::vector<Tensor> in{x}, out{x.detach() * 3.0, x.detach() * 5.0, arange(2)};
  record_many("both", in, out, x.device(), [&](std::span<const Tensor> dys) -> Grads {
    for (const Tensor& d : dys) defined.push_back(d.defined());
    return {dys[0] * 3.0};
  });
  CHECK((out[1].requires_grad() && !out[2].requires_grad()));
  x.set_grad({});
  out[0].sum().backward();
  CHECK(defined == Bools{true, false, false});
  CHECK(list(x.grad()) == List{3, 3});
  // A gradient of wrong shape, dtype or device is rejected.
  const auto with = [](T wrong) {
    const Tensor z = ones({2, 3}).requires_grad_();
    record("mine", {z}, z.detach() * 2.0,
           [wrong = Tensor(wrong)](T) -> Grads { return {Tensor(wrong)}; })
        .sum()
        .backward();
    return z.grad();
  };
  CHECK_THROWS_AS(with(ones({3, 2})), Error);
  CHECK_THROWS_AS(with(ones({2, 3}, {.dtype = DType::float64})), Error);
  CHECK_THROWS_AS(with(ones({2, 3}, {.device = there()})), Error);
  CHECK_FALSE(with(Tensor()).defined());  // undefined means "no gradient"
}

}  // namespace braid::test::on_device
