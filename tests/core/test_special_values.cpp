// NaN, infinities, zeros of both signs, denormals: in the first, a middle and the last place, in
// vector bodies and tails; and subgradients at kinks.
#include <cmath>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

struct Unary {
  const char* name;
  Tensor (*call)(const Tensor&);
  double (*expected)(double);
};

const std::vector<Unary>& unary_ops() {
  static const std::vector<Unary> list{
      {"neg", neg, [](double x) { return -x; }},
      {"abs", abs, [](double x) { return std::fabs(x); }},
      {"sign", sign, [](double x) { return std::isnan(x) ? x
                                           : x > 0       ? 1.0
                                           : x < 0       ? -1.0
                                                         : 0.0; }},
      {"relu", relu, [](double x) { return std::isnan(x) || x > 0 ? x : 0.0; }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"log", log, [](double x) { return std::log(x); }},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
      {"square", square, [](double x) { return x * x; }},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"sin", sin, [](double x) { return std::sin(x); }},
      {"cos", cos, [](double x) { return std::cos(x); }},
  };
  return list;
}

/// The same class of number, the sign of zeros and infinities included; finite numbers near.
bool same_class(double got, double want, DType t) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  const double rounded = reference::round_to(want, format_of(t));
  if (rounded == 0 || std::isinf(rounded))
    return std::fabs(got - rounded) <= 4 * reference::ulp(0, format_of(t)) || got == rounded;
  return std::fabs(got - want) <= 4 * reference::ulp(want, format_of(t));
}

std::vector<double> specials(DType t) {
  const reference::Format f = format_of(t);
  const double tiny = std::ldexp(1.0, f.min_exponent - f.precision + 1),
               smallest = std::ldexp(1.0, f.min_exponent);
  const double largest = std::ldexp(2 - std::ldexp(1.0, 1 - f.precision), f.max_exponent);
  std::vector<double> list{kNan, kInf, 0.0, smallest, largest, 1.0, 0.5, 100.0};
  // float16 denormals pass through float32, where they are normal
  if (t != DType::float16) list.push_back(tiny);
  for (std::size_t i = 0, n = list.size(); i < n; ++i) list.push_back(-list[i]);
  return list;
}

}  // namespace

TEST_CASE("special values: of functions of one tensor, in every place", "[special]") {
  for (const Unary& op : unary_ops())
    for (const DType dtype : floating_dtypes())
      for (const double v : specials(dtype))
        for (const std::int64_t n : {1, 3, 17, 64, 77})
          for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
            Array a({n}, 0.75);
            a[place] = v;
            const Tensor x = tensor_of(a, dtype);
            const Array in = array_of(x), out = array_of(op.call(x));
            for (const std::int64_t i : {place, (place + 1) % n})
              if (!same_class(out[i], op.expected(in[i]), dtype))
                FAIL_CHECK(op.name << "(" << in[i] << ") in " << dtype << ", place " << i << " of "
                                   << n << ": got " << out[i] << ", expected "
                                   << op.expected(in[i]));
          }
}

TEST_CASE("special values: signs of zero", "[special]") {
  for (const DType t : floating_dtypes()) {
    const Tensor zero = tensor({0.0, -0.0}, {.dtype = t});
    const auto negative = [](const Tensor& x, std::int64_t i) {
      return std::signbit(array_of(x)[i]);
    };
    INFO(t);
    CHECK((negative(-zero, 0) && !negative(-zero, 1)));
    CHECK((!negative(abs(zero), 0) && !negative(abs(zero), 1)));
    CHECK((!negative(sqrt(zero), 0) && negative(sqrt(zero), 1)));
    CHECK(array_of(reciprocal(zero)).data == std::vector<double>{kInf, -kInf});
    CHECK((!negative(tanh(zero), 0) && negative(tanh(zero), 1)));
    CHECK((!negative(sin(zero), 0) && negative(sin(zero), 1)));
    CHECK(negative(zero * tensor({-1.0, 1.0}, {.dtype = t}), 0));
    CHECK(negative(zero * tensor({-1.0, 1.0}, {.dtype = t}), 1));
    CHECK(eq(zero, tensor({-0.0, 0.0}, {.dtype = t})).to_vector<bool>() ==
          std::vector<bool>{true, true});
  }
}

TEST_CASE("special values: of functions of two tensors follow IEEE 754", "[special]") {
  for (const DType dtype : floating_dtypes()) {
    const std::vector<double> v = specials(dtype);
    const std::int64_t n = static_cast<std::int64_t>(v.size());
    // Every pair, by broadcasting; and the same pairs as two dense vectors.
    const Tensor column = tensor_of(Array({n, 1}, v), dtype),
                 line = tensor_of(Array({n}, v), dtype);
    const Tensor a = column.expand({n, n}).clone(), b = line.expand({n, n}).clone();
    struct Binary {
      const char* name;
      Tensor (*call)(const Tensor&, const Tensor&);
      double (*expected)(double, double);
    };
    const std::vector<Binary> ops{
        {"add", [](const Tensor& x, const Tensor& y) { return x + y; },
         [](double x, double y) { return x + y; }},
        {"sub", [](const Tensor& x, const Tensor& y) { return x - y; },
         [](double x, double y) { return x - y; }},
        {"mul", [](const Tensor& x, const Tensor& y) { return x * y; },
         [](double x, double y) { return x * y; }},
        {"div", [](const Tensor& x, const Tensor& y) { return x / y; },
         [](double x, double y) { return x / y; }},
        {"maximum", maximum,
         [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNan : std::max(x, y); }},
        {"minimum", minimum,
         [](double x, double y) { return std::isnan(x) || std::isnan(y) ? kNan : std::min(x, y); }},
        {"eq", [](const Tensor& x, const Tensor& y) { return eq(x, y); },
         [](double x, double y) { return static_cast<double>(x == y); }},
        {"ne", ne, [](double x, double y) { return static_cast<double>(x != y); }},
        {"lt", [](const Tensor& x, const Tensor& y) { return lt(x, y); },
         [](double x, double y) { return static_cast<double>(x < y); }},
        {"le", le, [](double x, double y) { return static_cast<double>(x <= y); }},
        {"gt", [](const Tensor& x, const Tensor& y) { return gt(x, y); },
         [](double x, double y) { return static_cast<double>(x > y); }},
        {"ge", ge, [](double x, double y) { return static_cast<double>(x >= y); }},
    };
    const Array p = array_of(a), q = array_of(b);
    for (const Binary& op : ops) {
      Array want({n, n});
      for (std::int64_t i = 0; i < n * n; ++i) want[i] = op.expected(p[i], q[i]);
      INFO(op.name << " " << dtype);
      CHECK_EXACT(op.call(a, b), want);
      CHECK_EXACT(op.call(column, line), want);
    }
  }
}

TEST_CASE("special values: pow", "[special]") {
  for (const DType t : {DType::float32, DType::float64}) {
    const Tensor x =
        tensor({-kInf, -2.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, kInf, kNan}, {.dtype = t});
    const Array a = array_of(x);
    for (const double e : {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 7.0}) {
      const Array y = array_of(pow(x, e));
      for (std::int64_t i = 0; i < a.size(); ++i)
        if (!same_class(y[i], std::pow(a[i], e), t))
          FAIL_CHECK("pow(" << a[i] << ", " << e << ") in " << t << ": got " << y[i]
                            << ", expected " << std::pow(a[i], e));
    }
  }
}

TEST_CASE("special values: subgradients at kinks", "[special][gradients]") {
  const auto gradient = [](const std::function<Tensor(const Tensor&)>& f,
                           const std::vector<double>& at) {
    const Tensor x = tensor(at).requires_grad_();
    return grad(f(x).sum(), {x})[0].to_vector<double>();
  };
  CHECK(gradient([](const Tensor& x) { return abs(x); }, {-2, 0, 3}) ==
        std::vector<double>{-1, 0, 1});
  CHECK(gradient([](const Tensor& x) { return relu(x); }, {-2, 0, 3}) ==
        std::vector<double>{0, 0, 1});
  CHECK(gradient([](const Tensor& x) { return sign(x); }, {-2, 0, 3}) ==
        std::vector<double>{0, 0, 0});
  // Equal values share: half and half between two operands, evenly among the largest elements.
  const Tensor a = tensor({1.0, 2.0, 5.0}).requires_grad_(),
               b = tensor({1.0, 3.0, 4.0}).requires_grad_();
  const std::vector<Tensor> up = grad(maximum(a, b).sum(), {a, b}),
                            down = grad(minimum(a, b).sum(), {a, b});
  CHECK(up[0].to_vector<double>() == std::vector<double>{0.5, 0, 1});
  CHECK(up[1].to_vector<double>() == std::vector<double>{0.5, 1, 0});
  CHECK(down[0].to_vector<double>() == std::vector<double>{0.5, 1, 0});
  CHECK(down[1].to_vector<double>() == std::vector<double>{0.5, 0, 1});
  CHECK(gradient([](const Tensor& x) { return max(x); }, {3, 1, 3, 3, 0, 3}) ==
        std::vector<double>{0.25, 0, 0.25, 0.25, 0, 0.25});
  CHECK(gradient([](const Tensor& x) { return min(x); }, {3, 1, 3, 1}) ==
        std::vector<double>{0, 0.5, 0, 0.5});
  CHECK(gradient([](const Tensor& x) { return max(x.reshape({2, 3}), {1}); }, {3, 1, 3, 2, 2, 2})
            .at(3) == Approx(1.0 / 3));
  // A NaN was not cut off, and is the largest and the smallest where there is one.
  const double nan = std::nan("");
  CHECK(gradient([](const Tensor& x) { return relu(x); }, {-2, nan, 3}) ==
        std::vector<double>{0, 1, 1});
  CHECK(gradient([](const Tensor& x) { return max(x); }, {1, nan, 3}) ==
        std::vector<double>{0, 1, 0});
  CHECK(gradient([](const Tensor& x) { return min(x); }, {nan, 1, nan}) ==
        std::vector<double>{0.5, 0, 0.5});
  CHECK(gradient([](const Tensor& x) { return max(x.reshape({2, 2}), {1}); }, {1, nan, 3, 2}) ==
        std::vector<double>{0, 1, 1, 0});
  // pow at 0.
  CHECK(gradient([](const Tensor& x) { return pow(x, 2); }, {0, -3}) == std::vector<double>{0, -6});
  CHECK(gradient([](const Tensor& x) { return pow(x, 1); }, {0, -3}) == std::vector<double>{1, 1});
  CHECK(gradient([](const Tensor& x) { return pow(x, 0); }, {0, 2}) == std::vector<double>{0, 0});
}

TEST_CASE("special values: where does not let a NaN of the other side into the gradient",
          "[special][gradients]") {
  const Tensor x = tensor({-1.0, 0.0, 4.0}).requires_grad_();
  const Tensor y = where(gt(x, 0), x, zeros({3}));
  CHECK(grad(y.sum(), {x})[0].to_vector<double>() == std::vector<double>{0, 0, 1});
  const Tensor m = tensor({true, false});
  const Tensor a = tensor({1.0, 2.0}).requires_grad_(), b = tensor({3.0, 4.0}).requires_grad_();
  const Tensor dy = tensor({kNan, 1.0});
  const Tensor z = where(m, a, b);
  const std::vector<Tensor> g =
      grad(std::vector<Tensor>{z}, std::vector<Tensor>{a, b}, std::vector<Tensor>{dy});
  CHECK(std::isnan(array_of(g[0])[0]));
  CHECK(array_of(g[0])[1] == 0);
  CHECK(array_of(g[1])[0] == 0);  // not 0 * NaN
}

}  // namespace braid::test::on_device
