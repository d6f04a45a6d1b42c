// Edges of the functions of ops/composed.hpp: broadcasting, dtypes, NaN and infinities, second
// derivatives, and what is refused.
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("composed: functions of two tensors", "[composed]") {
  const Tensor column = tensor({{1.0}, {2.0}}), vector = tensor({1.0, 2.0, 3.0}),
               m = tensor({{1.0, 1.0, 1.0}, {2.0, 0.5, 1.0}});
  const auto check_near = [](T y, const List& want) {
    const List got = list(y);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-6));
  };
  check_near(cosine_similarity(column, m, 1), {1, 0.8819170594});
  check_near(cosine_similarity(vector, m, 0), {0.9486832619, 0.9486832619, 1});
  check_near(cosine_similarity(vector, m, 1), {0.9258200526, 0.6998541355});
  check_near(cosine_similarity(tensor({{1, 2}}), tensor({{1.0, 2.0}})), {1});
  CHECK(cosine_similarity(m.to(kFloat16), m).dtype() == kFloat32);
  CHECK_THROWS_TEXT(DTypeError, "cosine_similarity: expected floating point*",
                    (void)cosine_similarity(tensor({{1}}), tensor({{1}})));
  CHECK_THROWS_TEXT(IndexError, "cosine_similarity*", (void)cosine_similarity(vector, vector));

  const auto bytes = [](std::int64_t a) { return tensor({a}).to(kUInt8); };
  const Tensor truths = tensor({true, false}), large = tensor({std::int64_t{1} << 62});
  check_bools({{isclose(bytes(1), bytes(2), 1e-5, 1.5), {true}},
               {isclose(bytes(2), bytes(1), 1e-5, 0.5), {false}},
               {isclose(tensor({kMin}), tensor({kMax})), {false}},
               {isclose(large, large + 1, 0, 0), {false}},
               {isclose(large, large + 1, 0, 1.5), {true}},
               {isclose(truths, tensor({true, true})), {true, false}},
               {isclose(truths, tensor({true, true}), 0, 2), {true, true}},
               {isclose(tensor({kInf, 1.0}), tensor({1.0, kInf}), 0, kInf), {false, false}}});
  for (const double bad : {-1.0, kNan}) {
    CHECK_THROWS_TEXT(ArgumentError, "isclose: expected rtol >= 0*",
                      (void)isclose(vector, vector, bad));
    CHECK_THROWS_TEXT(ArgumentError, "isclose: expected atol >= 0*",
                      (void)isclose(vector, vector, 0, bad));
  }

  check_lists({{hypot(tensor({kInf, kNan, 0.0}), tensor({kNan, -kInf, 0.0})), {kInf, kInf, 0}},
               {ldexp(tensor({1.0}).to(kFloat16), tensor({2})), {4}},
               {ldexp(tensor({0x1p-100}), tensor({200})), {0x1p100}},
               {ldexp(tensor({3}), tensor({2})), {12}},
               {div(tensor({7.5}), tensor({2}), "trunc"), {3}},
               {div(tensor({7}), 2.5, "trunc"), {2}},
               {round(tensor({10000.0, 250.5}).to(kFloat16), 1), {10000, 250.5}},
               {round(tensor({65504.0}).to(kFloat16), -2), {65504}}});
  // the number does not wrap around in the tensor's dtype
  check_near(xlogy(bytes(2), 300), {11.4075649493});
  check_near(xlogy(300, bytes(2)), {207.9441541680});
  const Tensor two = full({}, 2.0, {.device = here(), .dtype = DType::float64});
  CHECK(xlogy(two, 0.1).item<double>() == Approx(2 * std::log(0.1)).epsilon(1e-14));  // not 0.1f
  CHECK(std::isnan(list(hypot(tensor({kNan}), tensor({1.0})))[0]));
  CHECK(ldexp(tensor({1.0}).to(kFloat16), tensor({2})).dtype() == kFloat16);
  CHECK(ldexp(tensor({1.0}).to(kBFloat16), tensor({2})).dtype() == kBFloat16);
  CHECK(ldexp(tensor({1.0}).to(kFloat64), tensor({2})).dtype() == kFloat64);
  CHECK(hypot(tensor({3.0}).to(kFloat16), tensor({4.0}).to(kFloat16)).dtype() == kFloat16);
}

TEST_CASE("composed: gradients of functions of two tensors", "[composed][gradients]") {
  const auto hessian_at = [](const std::function<Tensor(T, T)>& f, double a, double b) {
    const Tensor x = tensor({a}).requires_grad_(), z = tensor({b}).requires_grad_();
    const std::vector<Tensor> first = pulled(f(x, z), {x, z}, ones({1}), true);
    List all;
    for (const Tensor& g : first)
      for (const Tensor& second : pulled(g, {x, z}, ones({1}), true))
        all.push_back(list(second)[0]);
    return all;
  };
  CHECK(hessian_at([](T a, T b) { return logaddexp(a, b); }, 1, 1) ==
        List{0.25, -0.25, -0.25, 0.25});
  CHECK(hessian_at([](T a, T b) { return hypot(a, b); }, 0, 4) == List{0.25, 0, 0, 0});
  CHECK(gradient_at([](T x) { return hypot(x, x * 0); }, {0, -2}) == List{0, -1});
  const auto leaf = [](std::uint64_t seed, const std::vector<std::int64_t>& shape) {
    return random_tensor(shape, kFloat64, here(), seed, 0.5, 2).requires_grad_();
  };
  const Tensor a = leaf(1, {2, 3}), b = leaf(2, {3});
  const std::function<Tensor(T, T)> functions[] = {
      [](T x, T z) { return hypot(x, z); }, [](T x, T z) { return logaddexp(x, z); },
      [](T x, T z) { return ldexp(x, z); }, [](T x, T z) { return cosine_similarity(x, z); }};
  for (const auto& f : functions) {
    CHECK(gradcheck(f, {a, b}));
    CHECK(gradgradcheck(f, {a, b}));
  }
  const Tensor equal = ones({3}).requires_grad_();
  std::get<0>(std_mean(equal)).backward();
  CHECK(list(equal.grad()) == List{0, 0, 0});
  CHECK(gradient_at([](T x) { return softshrink(x); }, {0.5, -0.5, 0.75}) == List{0, 0, 1});
  CHECK(gradient_at([](T x) { return prelu(x, full_like(x.sum(), 0.5)); }, {0, -1, 2}) ==
        List{0.5, 0.5, 1});
  const Tensor weight = tensor({0.5}).requires_grad_();
  prelu(tensor({{kInf}, {-2.0}}), weight).sum().backward();
  CHECK(list(weight.grad()) == List{-2});
}

TEST_CASE("composed: products that are added", "[composed]") {
  struct Row {
    const char* name;
    std::function<Tensor(T, T, T, const Scalar&, const Scalar&)> call;
    Shape x, a, b;
    std::vector<Shape> bad;  // shapes of x that do not broadcast to the product's
  };
  const Row rows[] = {
      {"addmm", addmm, {2, 2}, {2, 3}, {3, 2}, {{1, 2, 2}, {3}, {3, 2}}},
      {"addmv", addmv, {2}, {2, 3}, {3}, {{1, 2}, {3}}},
      {"addr", addr, {2, 3}, {2}, {3}, {{1, 2, 3}, {2}}},
      {"baddbmm", baddbmm, {2, 2, 2}, {2, 2, 3}, {2, 3, 2}, {{1, 2, 2, 2}, {3, 2, 2}}},
      {"addbmm", addbmm, {2, 2}, {2, 2, 3}, {2, 3, 2}, {{1, 2, 2}, {2, 2, 2}, {3}}}};
  for (const Row& r : rows) {
    INFO(r.name);
    const Tensor x = on_device::ones(r.x), a = on_device::ones(r.a), b = on_device::ones(r.b);
    const Tensor product = r.call(on_device::zeros(r.x), a, b, 1, 1);
    const auto nan = [](T t) { return full_like(t, kNan); };
    CHECK_SAME_BITS(r.call(nan(x), a, b, 0, 2), product * 2);
    CHECK_SAME_BITS(r.call(x, nan(a), b, 3, 0), x * 3);
    CHECK_SAME_BITS(r.call(ones({}), a, b, 1, 1), product + 1);
    for (const Shape& bad : r.bad)
      CHECK_THROWS_AS((void)r.call(on_device::ones(bad), a, b, 1, 1), ShapeError);
    // gradients of what is ignored
    const Tensor lost = nan(x).requires_grad_(), left = nan(a).requires_grad_();
    r.call(lost, a, b, 0, 1).sum().backward();
    r.call(x, left, b, 1, 0).sum().backward();
    CHECK_SAME_BITS(lost.grad(), on_device::zeros(r.x));
    CHECK_SAME_BITS(left.grad(), on_device::zeros(r.a));
    // dtypes
    const Tensor i = x.to(kInt64), j = a.to(kInt64), k = b.to(kInt64);
    CHECK(r.call(i, j, k, 2, 3).dtype() == kInt64);
    CHECK_SAME_BITS(r.call(i, j, k, 2.0, 3.0), (product * 3 + 2).to(kInt64));
    CHECK_THROWS_AS((void)r.call(i, j, k, 0.5, 1), DTypeError);
    CHECK_THROWS_AS((void)r.call(i, j, k, 1, 0.5), DTypeError);
    if (std::string(r.name) == "addr") {
      CHECK(r.call(i, a, b, 1, 1).dtype() == kFloat32);  // as in PyTorch, it alone promotes
      continue;
    }
    CHECK_THROWS_AS((void)r.call(i, a, b, 1, 1), DTypeError);
    CHECK_THROWS_AS((void)r.call(x, j, k, 1, 1), DTypeError);
    CHECK_THROWS_AS((void)r.call(x, a, k, 1, 1), DTypeError);
  }
  const Tensor row = ones({2});
  CHECK_THROWS_AS(row.addmm_(ones({2, 2}), ones({2, 2})), ShapeError);
  CHECK_THROWS_TEXT(ShapeError, "inner: expected one size*",
                    (void)inner(ones({2, 1}), ones({2, 3})));
  CHECK_THROWS_TEXT(ShapeError, "inner: expected one size*", (void)inner(ones({1}), ones({3})));
}

TEST_CASE("composed: products that are added are rounded once", "[composed][gradients]") {
  struct Row {
    const char* name;
    std::function<Tensor(T, T, T, const Scalar&, const Scalar&)> call;
    Shape a, b;
    std::vector<Shape> x;
  };
  const Row rows[] = {{"addmm", addmm, {5, 7}, {7, 6}, {{5, 6}, {6}, {1}, {5, 1}, {}}},
                      {"addmv", addmv, {5, 7}, {7}, {{5}, {1}, {}}},
                      {"addr", addr, {5}, {7}, {{5, 7}, {7}}},
                      {"baddbmm", baddbmm, {3, 5, 7}, {3, 7, 6}, {{3, 5, 6}, {6}, {5, 1}}},
                      {"addbmm", addbmm, {3, 5, 7}, {3, 7, 6}, {{5, 6}, {6}}}};
  // whole numbers, whose sums of products are exact in float32 alone
  const auto numbers = [](const Shape& shape, std::int64_t step) {
    const Tensor t = arange(shape.numel(), {.device = here()}) * step % 121 - 60;
    return t.reshape(shape).to(DType::float32);
  };
  for (const Row& r : rows)
    for (const Shape& shape : r.x)
      for (const DType t : {DType::float16, DType::bfloat16})
        for (const auto& [beta, alpha] : {std::pair{1.0, 1.0}, {0.25, 1.0 / 3}, {0.0, 0.7}}) {
          INFO(r.name << " " << shape << " " << t << " " << beta << " " << alpha);
          const auto run = [&, beta = beta, alpha = alpha](DType as) {
            std::vector<Tensor> leaves;
            for (const Tensor& n : {numbers(shape, 17), numbers(r.a, 31), numbers(r.b, 47)})
              leaves.push_back(n.to(as).requires_grad_());
            const Tensor y = r.call(leaves[0], leaves[1], leaves[2], beta, alpha);
            std::vector<Tensor> all = pulled(y, leaves, ones_like(y.detach()));
            all.push_back(y.detach());
            return all;
          };
          const std::vector<Tensor> narrow = run(t), wide = run(DType::float32);
          for (std::size_t i = 0; i < wide.size(); ++i) CHECK_SAME_BITS(narrow[i], wide[i].to(t));
        }
  const Tensor large = on_device::full({1, 1}, 256).to(DType::float16);
  CHECK(addmm(large, large, large, 0, 0.5).item<double>() == 32768);  // the product alone: infinite
}

TEST_CASE("composed: what is refused, and what is on the edge", "[composed]") {
  const Tensor x = tensor({1.0, 4.0, 9.0});
  CHECK_THROWS_TEXT(ShapeError, "prelu: expected a weight of 1 element*",
                    (void)prelu(-ones({2, 1}), ones({3})));
  CHECK_THROWS_TEXT(ShapeError, "prelu*", (void)prelu(-ones({3}), ones({3})));
  CHECK_THROWS_TEXT(ShapeError, "prelu*", (void)prelu(-ones({2, 3}), ones({1, 3})));
  CHECK(list(prelu(-ones({2, 2}), full_like(ones({}), 0.5))) == List{-0.5, -0.5, -0.5, -0.5});
  for (const double bad : {-1.0, kNan})
    CHECK_THROWS_TEXT(ArgumentError, "softshrink: expected lambda >= 0*", (void)softshrink(x, bad));
  CHECK_THROWS_TEXT(ArgumentError, "diff: expected n >= 0*", (void)diff(x, -1));
  CHECK_THROWS_TEXT(ShapeError, "diff: expected at least one dimension*", (void)diff(ones({})));
  CHECK_THROWS_TEXT(IndexError, "diff*", (void)diff(x, 1, 2));
  CHECK(diff(x, 0).storage() != x.storage());
  CHECK(diff(x, 5).shape() == Shape{0});
  const ValuesIndices only = kthvalue(tensor(3.0), 1);
  CHECK((only.values.dim() == 0 && only.values.item<double>() == 3 &&
         only.indices.item<std::int64_t>() == 0));
  CHECK_THROWS_TEXT(IndexError, "kthvalue: expected k in *", (void)kthvalue(tensor(3.0), 2));
  CHECK_THROWS_TEXT(DTypeError, "take: expected an int64 index*",
                    (void)take(x, tensor({true, false, true})));
  CHECK_THROWS_TEXT(DTypeError, "take: expected an int64 index*",
                    (void)take(x, tensor({1}).to(kInt32)));
  CHECK(list(take(x, tensor({{-1}, {0}}))) == List{9, 1});
  CHECK(list(take(tensor(5.0), tensor({{0}}))) == List{5});
  const Tensor special = tensor({kNan, kInf, -kInf});
  check_lists({{nan_to_num(special, 0, 1e300), {0, kInf, -0x1.fffffep127}},
               {nan_to_num(special, 1e300, 3.4028235e38, -1e300), {kInf, 0x1.fffffep127, -kInf}},
               {nan_to_num(special.to(kFloat16), 1e6, 1, -1e300), {kInf, 1, -kInf}}});
  CHECK_THROWS_TEXT(IndexError, "normalize*", (void)normalize(x));
}

}  // namespace braid::test::on_device
