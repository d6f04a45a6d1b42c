// Tests of functions of two tensors beyond the table of test_ops.cpp: every pair of special values,
// mixed dtypes, wide integers, broadcasting.
#include <algorithm>
#include <functional>
#include <vector>

#include "reference/binary.hpp"
#include "reference/elementwise.hpp"
#include "shorthand.hpp"
#include "special_values.hpp"

namespace braid::test::on_device {
namespace {

/// Every pair of these numbers, by broadcasting and as two contiguous vectors.
struct Pairs {
  Tensor column, line, a, b;
  Array p, q;
  Pairs(const List& v, DType t) {
    const auto n = static_cast<std::int64_t>(v.size());
    column = tensor_of(Array({n, 1}, v), t), line = tensor_of(Array({n}, v), t);
    a = column.expand({n, n}).clone(), b = line.expand({n, n}).clone();
    p = array_of(a), q = array_of(b);
  }
};

struct Binary {
  const char* name;
  Tensor (*call)(T, T);
  double (*expected)(double, double);
};

}  // namespace

TEST_CASE("special values: of functions of two tensors follow IEEE 754", "[special]") {
  const Binary ops[] = {
      {"add", [](T x, T y) { return x + y; }, [](double x, double y) { return x + y; }},
      {"sub", [](T x, T y) { return x - y; }, [](double x, double y) { return x - y; }},
      {"mul", mul, [](double x, double y) { return x * y; }},
      {"div", div, [](double x, double y) { return x / y; }},
      {"maximum", maximum,
       [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNan : std::max(x, y); }},
      {"minimum", minimum,
       [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNan : std::min(x, y); }},
      {"eq", eq, [](double x, double y) { return static_cast<double>(x == y); }},
      {"ne", ne, [](double x, double y) { return static_cast<double>(x != y); }},
      {"lt", lt, [](double x, double y) { return static_cast<double>(x < y); }},
      {"le", le, [](double x, double y) { return static_cast<double>(x <= y); }},
      {"gt", gt, [](double x, double y) { return static_cast<double>(x > y); }},
      {"ge", ge, [](double x, double y) { return static_cast<double>(x >= y); }},
  };
  for (const DType dtype : floating_dtypes()) {
    const Pairs pairs(specials(dtype), dtype);
    for (const Binary& op : ops) {
      Array want(pairs.p.shape);
      for (std::int64_t i = 0; i < want.size(); ++i) want[i] = op.expected(pairs.p[i], pairs.q[i]);
      INFO(op.name << " " << dtype);
      CHECK_EXACT(op.call(pairs.a, pairs.b), want);
      CHECK_EXACT(op.call(pairs.column, pairs.line), want);
    }
    check_same(tensor({0.0, -0.0}, {.dtype = dtype}) * tensor({-1.0, 1.0}, {.dtype = dtype}),
               {-0.0, -0.0});
  }
}

TEST_CASE("special values: of powers and divisions, for every pair", "[special]") {
  const Binary ops[] = {{"pow", pow, [](double a, double b) { return std::pow(a, b); }},
                        {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }},
                        {"fmod", fmod, [](double a, double b) { return std::fmod(a, b); }},
                        {"remainder", remainder, reference::remainder},
                        {"floor_divide", floor_divide, reference::floor_divide}};
  const List v{kNan, kInf, -kInf, 0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 7, 100};
  for (const DType t : {DType::float32, DType::float64}) {
    const Pairs pairs(v, t);
    const auto check = [&](const Binary& op, double got, double a, double b) {
      if (!same_class(got, op.expected(a, b), t, false))
        FAIL_CHECK(op.name << '(' << a << ", " << b << ") in " << t << ": got " << got
                           << ", expected " << op.expected(a, b));
    };
    for (const Binary& op : ops) {
      const Array y = array_of(op.call(pairs.column, pairs.line));
      for (std::int64_t i = 0; i < y.size(); ++i) check(op, y[i], pairs.p[i], pairs.q[i]);
    }
    for (const double e : {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 7.0}) {
      const Array y = array_of(pow(pairs.line, e));
      for (std::int64_t i = 0; i < y.size(); ++i) check(ops[0], y[i], pairs.q[i], e);
    }
  }
}

TEST_CASE("elementwise: functions of two tensors at every size and number of threads",
          "[elementwise]") {
  const KeepThreads keep;
  for (const DType dtype : {DType::int32, DType::int64, DType::float16, DType::bfloat16,
                            DType::float32, DType::float64})
    for (const std::int64_t n : sizes()) {
      const Tensor x = random_tensor({n}, dtype, {}, 1), y = random_tensor({n}, dtype, {}, 2),
                   one = random_tensor({1}, dtype, {}, 3),
                   column = random_tensor({3, 1}, dtype, {}, 4);
      const Array a = array_of(x), b = array_of(y), c = array_of(one), d = array_of(column);
      const auto plus = [](double p, double q) { return p + q; };
      const auto times = [](double p, double q) { return p * q; };
      INFO(dtype << " of " << n);
      for (const int threads : thread_counts({1, 3})) {
        set_num_threads(threads);
        CHECK_EXACT(x + y, reference::zip(a, b, plus));
        CHECK_EXACT(x * y, reference::zip(a, b, times));
        CHECK_EXACT(x - one, reference::zip(a, c, [](double p, double q) { return p - q; }));
        CHECK_EXACT(one * x, reference::zip(c, a, times));
        CHECK_EXACT(x + column, reference::zip(a, d, plus));
        CHECK_EXACT(column * x, reference::zip(d, a, times));
        CHECK_EXACT(maximum(x, y), reference::zip(a, b, reference::larger));
        CHECK_EXACT(gt(x, y), reference::zip(a, b, [](double p, double q) { return p > q; }));
        CHECK_EXACT(where(gt(x, y), x, y), reference::zip(a, b, reference::larger));
        CHECK_EXACT(x + 3, reference::map(a, [](double p) { return p + 3; }));
      }
    }
}

TEST_CASE("elementwise: two types are promoted", "[elementwise]") {
  for (const DType a : all_dtypes())
    for (const DType b : all_dtypes()) {
      const Tensor x = random_tensor({2, 3}, a, {}, 1, 0, 9),
                   y = random_tensor({3}, b, {}, 2, 1, 9);
      const DType common = promote(a, b);
      const Array p = array_of(x), q = array_of(y);
      INFO(a << " with " << b);
      const Tensor sum = x + y, product = x * y;
      for (const Tensor& z :
           {sum, product, where(tensor({true, false, true}), x, y), maximum(x, y)})
        CHECK(z.dtype() == common);
      if (common != DType::bool_)
        CHECK_EXACT(sum, reference::zip(p, q, [](double u, double v) { return u + v; }));
      CHECK_EXACT(product, reference::zip(p, q, [](double u, double v) { return u * v; }));
      CHECK((x / full({3}, 2, {.dtype = b})).dtype() ==
            (is_floating(common) ? common : DType::float32));
      CHECK(lt(x, y).dtype() == DType::bool_);
      CHECK_EXACT(lt(x, y), reference::zip(p, q, [](double u, double v) { return u < v; }));
    }
  // The operands are converted to the common dtype before the operation.
  CHECK(add(tensor({1.0}, {.dtype = DType::float16}), tensor({0x1p-12}, {.dtype = DType::float64}))
            .item<double>() == 1 + 0x1p-12);
  CHECK(add(tensor({1.0}, {.dtype = DType::float16}), tensor({0x1p-9}, {.dtype = DType::bfloat16}))
            .item<double>() == 1 + 0x1p-9);
}

TEST_CASE("elementwise: gradients go back to the types that took part",
          "[elementwise][gradients]") {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = DType::float16}).requires_grad_(),
               y = tensor({3.0, 4.0}, {.dtype = DType::float64}).requires_grad_(),
               z = tensor({1.0, 2.0}).requires_grad_();
  (x * y).sum().backward();
  (z * arange(2)).sum().backward();
  CHECK(x.grad().dtype() == DType::float16);
  CHECK(y.grad().dtype() == DType::float64);
  check_lists({{x.grad(), {3, 4}}, {y.grad(), {1, 2}}, {z.grad(), {0, 1}}});
}

TEST_CASE("elementwise: a number keeps the type of the tensor", "[elementwise]") {
  for (const DType t : floating_dtypes()) {
    const Tensor x = full({2}, 1.5, {.dtype = t});
    for (const Tensor& y : {x + 1, x - 1, x * 2, x / 2, 1 + x, 1 - x, 2 * x, 2 / x, pow(x, 2)})
      CHECK(y.dtype() == t);
  }
  // Numbers that the dtype cannot represent are rounded to it first.
  CHECK((tensor({1.0}, {.dtype = DType::bfloat16}) * 1.001).item<double>() == 1);
  for (const DType t : {DType::uint8, DType::int32, DType::int64})
    CHECK((full({2}, 5, {.dtype = t}) + 1).dtype() == t);
  CHECK((arange(3) / 2).dtype() == DType::float32);
  CHECK(list(arange(3) / 2) == List{0, 0.5, 1});
}

TEST_CASE("elementwise: 64-bit integers are exact, and overflow wraps without a trap",
          "[elementwise]") {
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;
  const Tensor x = tensor({kBig, -kBig}), y = tensor({std::int64_t{1}, std::int64_t{1}}),
               low = tensor({kMin}), most = tensor({0x7fffffff}, {.dtype = DType::int32});
  check_whole({{x + y, {kBig + 1, -kBig + 1}},
               {x - y, {kBig - 1, -kBig - 1}},
               {-x, {-kBig, kBig}},
               {abs(x), {kBig, kBig}},
               {x * y, {kBig, -kBig}},
               {gt(x, x - y), {1, 1}},
               {eq(x, x - y), {0, 0}},
               {maximum(x, x - y), {kBig, -kBig}},
               {where(tensor({true, false}), x, y), {kBig, 1}},
               {-low, {kMin}},
               {low - tensor({1}), {kMax}},
               {most + tensor({1}, {.dtype = DType::int32}), {-0x80000000ll}}});
  CHECK(list(arange(2) / tensor({0, 0}))[1] == kInf);  // true division
}

TEST_CASE("elementwise: broadcasting is an expand", "[elementwise]") {
  Numbers numbers(8);
  for (int round = 0; round < 200; ++round) {
    Sizes full;
    for (std::int64_t i = numbers.integer(0, 5); i > 0; --i) full.push_back(numbers.integer(0, 5));
    const auto part = [&](int seed) {
      Sizes s(full.begin() + numbers.integer(0, static_cast<std::int64_t>(full.size()) + 1),
              full.end());
      for (std::int64_t& n : s)
        if (numbers.integer(0, 3) == 0) n = 1;
      return random_tensor(s, DType::float32, {}, static_cast<std::uint64_t>(seed));
    };
    const Tensor a = part(round), b = part(round + 1000), c = part(7);
    const Shape shape = broadcast_shapes("add", a.shape(), b.shape()),
                all = broadcast_shapes("where", shape, c.shape());
    INFO(a.shape() << " with " << b.shape());
    CHECK_SAME_BITS(a + b, a.expand(shape).clone() + b.expand(shape).clone());
    CHECK_EXACT(a * b,
                reference::zip(array_of(a), array_of(b), [](double p, double q) { return p * q; }));
    CHECK_SAME_BITS(
        where(gt(a, 0), b, c),
        where(gt(a, 0).expand(broadcast_shapes("where", a.shape(), all)).clone(), b, c));
  }
}

TEST_CASE("elementwise: an integer divisor 0 names the op", "[elementwise][errors]") {
  const Tensor x = tensor({4, 2}), zero = tensor({1, 0});
  const std::string text = ": expected integer divisors other than 0, got 0";
  CHECK_THROWS_TEXT(ArgumentError, "floor_divide" + text, awaited(floor_divide(x, zero)));
  CHECK_THROWS_TEXT(ArgumentError, "floor_divide" + text, awaited(floor_divide(x, 0)));
  CHECK_THROWS_TEXT(ArgumentError, "remainder" + text, awaited(remainder(x, zero)));
  CHECK_THROWS_TEXT(ArgumentError, "fmod" + text, awaited(fmod(x, zero)));
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

TEST_CASE("binary: a CPU tensor without dims beside tensors of a GPU", "[binary][devices]") {
  // on the CPU the same without another device
  const Device cpu = on_cpu() ? here() : Device();
  const auto number = [&](double v) { return tensor(v, {.device = cpu, .dtype = DType::float64}); };
  const Tensor x = tensor({1.0, 2, 3}, {.dtype = DType::float64}), two = number(2),
               yes = tensor(true, {.device = cpu}), mask = x > 1;
  const auto is = [](T y, const List& expected) {
    CHECK(y.device() == here());
    CHECK(list(y) == expected);
  };
  is(x * two, {2, 4, 6});
  is(two - x, {1, 0, -1});
  is(x.sum() + number(1), {7});
  is(number(1) / x.sum().mul_(0.5), {1.0 / 3});
  is(pow(x, two), {1, 4, 9});
  is(remainder(x, two), {1, 0, 1});
  is((x > two).to(DType::float64), {0, 0, 1});
  is(logical_and(mask, yes).to(DType::float64), {0, 1, 1});
  is((mask & yes).to(DType::float64), {0, 1, 1});
  is(where(mask, x, two), {2, 2, 3});
  is(where(mask, number(1), two), {2, 1, 1});
  is(where(yes, x, two), {1, 2, 3});
  is(masked_fill(x, mask, two), {1, 2, 2});
  is(lerp(x, two, number(0.5)), {1.5, 2, 2.5});
  is(lerp(x, two, 0.5), {1.5, 2, 2.5});
  is(addcmul(x, two, x), {3, 6, 9});
  is(clamp(x, two, Tensor()), {2, 2, 3});
  is(clamp(x, number(1.5), number(2.5)), {1.5, 2, 2.5});
  is(maximum(two, x), {2, 2, 3});
  is(hypot(number(0), x), {1, 2, 3});
  is(xlogy(number(0), x), {0, 0, 0});
  is(x * tensor(2, {.device = cpu}), {2, 4, 6});
  is(x.clone().mul_(two), {2, 4, 6});
  is(x.clone().add_(two), {3, 4, 5});
  is(x.clone().sub_(two, 2), {-3, -2, -1});
  is(x.clone().div_(two), {0.5, 1, 1.5});
  is(x.clone().pow_(two), {1, 4, 9});
  is(x.clone().masked_fill_(mask, two), {1, 2, 2});
  is(x.clone().masked_fill_(yes, 5), {5, 5, 5});
  // the gradient goes back to the CPU
  const Tensor w = number(3).requires_grad_(), v = x.clone().requires_grad_();
  (v * w + lerp(v, w, 0.5) + where(mask, v, w)).sum().backward();
  CHECK(w.grad().device() == cpu);
  CHECK(list(w.grad()) == List{6 + 1.5 + 1});
  CHECK(list(v.grad()) == List{3.5, 4.5, 4.5});
  const Tensor z = v * 1;
  z.mul_(w);
  z.sum().backward();
  CHECK(list(w.grad()) == List{6 + 1.5 + 1 + 6});
  if (on_cpu()) return;
  for (const auto& refused : std::vector<std::function<Tensor()>>{
           [&] { return x + x.to(cpu); }, [&] { return x.sum() + x.to(cpu); },
           [&] { return two.clone().add_(x.sum()); }, [&] { return two.clone().pow_(x.sum()); },
           [&] { return two.clone().masked_fill_(mask[0], 1); },
           [&] { return where(mask.to(cpu), x, x); }, [&] { return lerp(x, x, x.to(cpu)); }})
    CHECK_THROWS_TEXT(DeviceError, "expected tensors on one device, got ", refused());
}

TEST_CASE("binary: a product or a quotient with a constant saves the constant alone",
          "[binary][gradients]") {
  const Tensor constant = full({3}, 4.0), number = full({}, 4.0);
  const auto gradient = [](const std::function<Tensor(T)>& f, bool change) {
    const Tensor x = full({2, 3}, 3.0).requires_grad_(), u = x * 1, y = f(u);
    if (change) u.add_(1);
    y.sum().backward();
    return list(x.grad());
  };
  const std::function<Tensor(T)> functions[] = {
      [&](T u) { return u * constant; }, [&](T u) { return constant * u; },
      [&](T u) { return u * number; }, [&](T u) { return u / constant; }};
  for (const auto& f : functions) CHECK(gradient(f, true) == gradient(f, false));
  CHECK(gradient(functions[1], true) == List{4, 4, 4, 4, 4, 4});
  CHECK_THROWS_AS(gradient([&](T u) { return constant / u; }, true), AutogradError);
  CHECK_THROWS_AS(gradient([](T u) { return u * u; }, true), AutogradError);
  const Tensor small = ones({3}).requires_grad_();  // broadcasting: the gradient is summed
  (small * full({2, 3}, 5.0)).sum().backward();
  (full({2, 3}, 5.0) * small).sum().backward();
  (small / full({2, 3}, 5.0)).sum().backward();
  CHECK(list(small.grad())[0] == Approx(20.4));
  CHECK(small.grad().shape() == Shape{3});
}

}  // namespace braid::test::on_device
