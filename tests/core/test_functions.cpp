// Functions, activations, clamp and masks beyond the table: special values, every size, kinks,
// numbers as operands, changes in place.
#include <cmath>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/activations.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "reference/activations.hpp"
#include "reference/elementwise.hpp"
#include "reference/functions.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

using T = const Tensor&;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

std::vector<double> gradient(const std::function<Tensor(T)>& f, const std::vector<double>& at) {
  const Tensor x = tensor(at).requires_grad_();
  return grad(f(x).sum(), {x})[0].to_vector<double>();
}
/// Equal, NaN to NaN, and the sign of zero.
void check_same(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> v = got.to_vector<double>();
  REQUIRE(v.size() == want.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    INFO(got.dtype() << ", place " << i << ": got " << v[i] << ", expected " << want[i]);
    if (std::isnan(want[i])) CHECK(std::isnan(v[i]));
    else CHECK((v[i] == want[i] && std::signbit(v[i]) == std::signbit(want[i])));
  }
}

}  // namespace

TEST_CASE("functions: infinities, NaN and zeros of both signs", "[functions][special]") {
  for (const DType t : floating_dtypes()) {
    const Tensor x = tensor({kInf, -kInf, kNan, 0.0, -0.0}, {.dtype = t});
    const auto is = [&](Tensor (*f)(T), const std::vector<double>& want) {
      check_same(f(x), want);
    };
    is(exp2, {kInf, 0, kNan, 1, 1});
    is(expm1, {kInf, -1, kNan, 0, -0.0});
    is(log1p, {kInf, kNan, kNan, 0, -0.0});
    is(log2, {kInf, kNan, kNan, -kInf, -kInf});
    is(log10, {kInf, kNan, kNan, -kInf, -kInf});
    is(tan, {kNan, kNan, kNan, 0, -0.0});
    is(asin, {kNan, kNan, kNan, 0, -0.0});
    is(sinh, {kInf, -kInf, kNan, 0, -0.0});
    is(cosh, {kInf, kInf, kNan, 1, 1});
    is(asinh, {kInf, -kInf, kNan, 0, -0.0});
    is(acosh, {kInf, kNan, kNan, kNan, kNan});
    is(atanh, {kNan, kNan, kNan, 0, -0.0});
    is(erf, {1, -1, kNan, 0, -0.0});
    is(erfc, {0, 2, kNan, 1, 1});
    for (Tensor (*f)(T) : {floor, ceil, round, trunc})
      check_same(f(x), {kInf, -kInf, kNan, 0, -0.0});
    check_same(floor(tensor({-0.5, 0.5, -1.5, 2.5}, {.dtype = t})), {-1, 0, -2, 2});
    check_same(ceil(tensor({-0.5, 0.5, -1.5, 2.5}, {.dtype = t})), {-0.0, 1, -1, 3});
    check_same(round(tensor({-0.5, 0.5, -1.5, 2.5}, {.dtype = t})), {-0.0, 0, -2, 2});
    check_same(trunc(tensor({-0.5, 0.5, -1.5, 2.5}, {.dtype = t})), {-0.0, 0, -1, 2});
    check_same(atanh(tensor({1.0, -1.0, 1.5}, {.dtype = t})), {kInf, -kInf, kNan});
    CHECK(isnan(x).to_vector<bool>() == std::vector<bool>{false, false, true, false, false});
    CHECK(isinf(x).to_vector<bool>() == std::vector<bool>{true, true, false, false, false});
    CHECK(isfinite(x).to_vector<bool>() == std::vector<bool>{false, false, false, true, true});
    CHECK(logical_not(x).to_vector<bool>() == std::vector<bool>{false, false, false, true, true});
    CHECK(logical_and(x, x).to_vector<bool>() == std::vector<bool>{true, true, true, false, false});
  }
}

TEST_CASE("functions: of two tensors, every pair of special values", "[functions][special]") {
  const std::vector<double> v{kNan, kInf, -kInf, 0.0, -0.0, 1,    -1, 0.5, -0.5,
                              2,    -2,   3,     -3,  2.5,  -2.5, 7,  100};
  const auto n = static_cast<std::int64_t>(v.size());
  struct Case {
    const char* name;
    Tensor (*call)(T, T);
    double (*expected)(double, double);
  };
  const Case cases[] = {{"pow", pow, [](double a, double b) { return std::pow(a, b); }},
                        {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }},
                        {"fmod", fmod, [](double a, double b) { return std::fmod(a, b); }},
                        {"remainder", remainder, reference::remainder},
                        {"floor_divide", floor_divide, reference::floor_divide}};
  for (const DType t : {DType::float32, DType::float64})
    for (const Case& c : cases) {
      const Tensor y = c.call(tensor_of(Array({n, 1}, v), t), tensor_of(Array({n}, v), t));
      const Array got = array_of(y);
      for (std::int64_t i = 0; i < n * n; ++i) {
        const double a = v[static_cast<std::size_t>(i / n)], b = v[static_cast<std::size_t>(i % n)],
                     want = reference::round_to(c.expected(a, b), format_of(t));
        const bool same = std::isnan(want)
                              ? std::isnan(got[i])
                              : got[i] == want || std::fabs(got[i] - want) <=
                                                      4 * reference::ulp(want, format_of(t));
        if (!same)
          FAIL_CHECK(c.name << '(' << a << ", " << b << ") in " << t << ": got " << got[i]
                            << ", expected " << want);
      }
    }
}

TEST_CASE("functions: integers divide and are left with remainders as Python's do, and wrap around",
          "[functions]") {
  const Tensor a = tensor({7, -7, 7, -7, 6, 0}), b = tensor({2, 2, -2, -2, -3, 5});
  CHECK(floor_divide(a, b).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{3, -4, -4, 3, -2, 0});
  CHECK(remainder(a, b).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, -1, -1, 0, 0});
  CHECK(fmod(a, b).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, -1, 1, -1, 0, 0});
  const Tensor least = full({1}, -0x1p63, {.dtype = DType::int64});
  CHECK(floor_divide(least, -1).to_vector<std::int64_t>() == std::vector<std::int64_t>{INT64_MIN});
  CHECK(remainder(least, -1).to_vector<std::int64_t>() == std::vector<std::int64_t>{0});
  CHECK(pow(tensor({2, 3, -2, -1, 1, 0, 2}), tensor({63, 4, 3, -3, -5, 0, -1}))
            .to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{INT64_MIN, 81, -8, -1, 1, 1, 0});
  for (Tensor (*f)(T, T) :
       {static_cast<Tensor (*)(T, T)>(fmod), static_cast<Tensor (*)(T, T)>(remainder),
        static_cast<Tensor (*)(T, T)>(floor_divide)}) {
    CHECK_THROWS_AS(awaited(f(a, zeros({6}, {.dtype = DType::int64}))), ArgumentError);
    CHECK(std::isnan(f(tensor({0.0}), tensor({0.0})).item<double>()));
  }
}

TEST_CASE("activations: every size, special values and kinks", "[activations]") {
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
  for (const Case& c : cases)
    for (const DType t : floating_dtypes())
      for (const std::int64_t n :
           {1, 7, 8, 16, 17, 33, 511, 513, static_cast<int>(cut(40000, 1025))}) {
        const Tensor x = random_tensor({n}, t, here(), static_cast<std::uint64_t>(n), -9, 9);
        INFO(c.name << " of " << n << ' ' << t);
        CHECK(close(c.call(x), reference::map(array_of(x), c.expected), tolerance(t)) == "");
      }
  const Tensor far = tensor({80.0, -80.0, 200.0, -200.0});
  check_same(silu(far).slice(0, 0, 3, 2), {80, 200});
  CHECK(silu(far)[1].item<double>() == Approx(reference::silu(-80)).epsilon(1e-6));
  check_same(softplus(far).slice(0, 0, 3, 2), {80, 200});
  CHECK(softplus(far)[1].item<double>() == Approx(reference::softplus(-80)).epsilon(1e-6));
  check_same(mish(far).slice(0, 0, 3, 2), {80, 200});
  check_same(gelu(far).slice(0, 0, 3, 2), {80, 200});
  check_same(logsigmoid(far).slice(0, 1, 4, 2), {-80, -200});
  const Tensor odd = tensor({kNan, kInf});
  for (const Case& c : cases) CHECK(std::isnan(c.call(odd).to_vector<double>()[0]));
  // The values that PyTorch gives at kinks, and a NaN's gradient.
  const std::vector<double> at{-3, 3, 0, 1, -1, 6, kNan};
  const auto is = [&](const std::function<Tensor(T)>& f, const std::vector<double>& want) {
    check_same(tensor(gradient(f, at)), want);
  };
  is(hardswish, {0, 1, 0.5, 1.0 / 3 + 0.5, -1.0 / 3 + 0.5, 1, 1});
  is(hardsigmoid, {0, 0, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0, 0});
  is([](T x) { return hardtanh(x); }, {0, 0, 1, 0, 0, 0, 1});
  is(relu6, {0, 1, 0, 1, 0, 0, 1});
  is([](T x) { return leaky_relu(x, 0.25); }, {0.25, 1, 0.25, 1, 0.25, 1, 0.25});
  is([](T x) { return clamp(x, -1, 3); }, {0, 0, 1, 1, 0, 0, 0});
  is([](T x) { return clamp(x, -1); }, {0, 1, 1, 1, 0, 1, 0});
  check_same(tensor(gradient([](T x) { return clamp(x, std::nullopt, 3); }, {-kInf, kInf})),
             {1, 0});
}

TEST_CASE("clamp: NaN, bounds that do not bind, integers at the ends of their types, tensors",
          "[clamp]") {
  check_same(clamp(tensor({kNan, -5.0, 5.0}), -1, 1), {kNan, -1, 1});
  check_same(clamp(tensor({1.0, 2.0}), kNan), {kNan, kNan});
  check_same(clamp(tensor({1.0, 2.0}), 5, 0), {0, 0});
  const Tensor bytes = tensor({0, 7, 255}).to(DType::uint8);
  CHECK(clamp(bytes, -5, 300).to_vector<double>() == std::vector<double>{0, 7, 255});
  CHECK(clamp(bytes, 300).to_vector<double>() == std::vector<double>{255, 255, 255});
  CHECK(clamp(bytes, std::nullopt, -1).to_vector<double>() == std::vector<double>{0, 0, 0});
  CHECK(clamp(tensor({1, 5}), 1.5, 2.5).to_vector<double>() == std::vector<double>{1.5, 2.5});
  CHECK(clamp(tensor({INT64_MIN, INT64_MAX}), std::nullopt, kInf).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{INT64_MIN, INT64_MAX});
  // Where do gradients go? To x inside the bounds (NaN too), to a bound where it binds, half and
  // half at a bound, to the upper one of two that are crossed.
  const Tensor x = tensor({-2.0, 0.0, 2.0, 0.5, 1.0, 0.0, 1.0, kNan, 3.0}).requires_grad_(),
               low = tensor({-1.0, -1.0, -1.0, 2.0, 1.0, 1.0, 1.0, -1.0, 1.0}).requires_grad_(),
               high = tensor({1.0, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 3.0}).requires_grad_();
  const std::vector<Tensor> g = grad(clamp(x, low, high).sum(), {x, low, high});
  CHECK(g[0].to_vector<double>() == std::vector<double>{0, 1, 0, 0, 0.5, 0, 1, 1, 0.5});
  CHECK(g[1].to_vector<double>() == std::vector<double>{1, 0, 0, 0, 0.5, 1, 0, 0, 0});
  CHECK(g[2].to_vector<double>() == std::vector<double>{0, 0, 1, 1, 0, 0, 0, 0, 0.5});
}

TEST_CASE("functions: gradients at zeros", "[functions][gradients]") {
  CHECK(gradient([](T x) { return pow(x, tensor({0.0, 2.0, 1.0})); }, {0, 0, 0}) ==
        std::vector<double>{0, 0, 1});
  CHECK(gradient([](T e) { return pow(tensor({0.0, 0.0}), e); }, {0, 2}) ==
        std::vector<double>{0, 0});
  CHECK(gradient([](T e) { return pow(0.0, e); }, {1, 2}) == std::vector<double>{0, 0});
  CHECK(gradient([](T y) { return atan2(y, tensor({0.0, 1.0})); }, {0, 0}) ==
        std::vector<double>{0, 1});
  CHECK(gradient([](T a) { return xlogy(a, tensor({0.0, 1.0})); }, {0, 0}) ==
        std::vector<double>{0, 0});
  check_same(xlogy(tensor({0.0, 0.0, 0.0}), tensor({0.0, kInf, kNan})), {0, 0, kNan});
  CHECK(gradient([](T x) { return floor(mul(x, 2)); }, {0.3, 1.7}) == std::vector<double>{0, 0});
}

TEST_CASE("in place: clamp_, masked_fill_, relu_, div_ and sub_ write what the functions give",
          "[inplace][functions]") {
  for (const DType t : {DType::int32, DType::float16, DType::float32, DType::float64}) {
    const Tensor x = random_tensor({4, 5}, t), mask = gt(x, 0);
    const auto check = [&](const Tensor& want, const std::function<const Tensor&(T)>& change) {
      for (const bool strided : {false, true}) {
        const Tensor y = strided ? x.t().clone().t() : x.clone();
        const std::uint64_t before = y.version();
        CHECK(&change(y) == &y);
        CHECK_SAME_BITS(y, want);
        CHECK(y.version() == before + 1);
      }
    };
    check(clamp(x, -1, 1), [](T y) -> T { return y.clamp_(-1, 1); });
    check(clamp(x, 0), [](T y) -> T { return y.clamp_(0); });
    check(masked_fill(x, mask, 3), [&](T y) -> T { return y.masked_fill_(mask, 3); });
    check(masked_fill(x, mask[0], -1), [&](T y) -> T { return y.masked_fill_(mask[0], -1); });
    check(relu(x), [](T y) -> T { return y.relu_(); });
    check(x - 2.0, [](T y) -> T { return y.sub_(2); });
    if (!is_floating(t)) continue;
    check(x / 3.0, [](T y) -> T { return y.div_(3); });
    check(x / x[0], [&](T y) -> T { return y.div_(x[0].clone()); });
  }
  const Tensor itself = tensor({2.0, 4.0});
  CHECK(itself.div_(itself).to_vector<double>() == std::vector<double>{1, 1});
}

TEST_CASE("in place: gradients pass as through the functions", "[inplace][functions][gradients]") {
  const auto check = [](const std::function<void(T)>& change, const std::function<Tensor(T)>& f) {
    const Tensor x = random_tensor({3, 4}, DType::float64, here()).requires_grad_();
    CHECK(gradcheck(function_of([&](T v) {
                      const Tensor y = v * 2.0;
                      change(y);
                      return y * y;
                    }),
                    {x}) == "");
    const Tensor y = x * 2.0;
    change(y);
    CHECK_SAME_BITS(y.detach(), f(x * 2.0).detach());
    CHECK_SAME_BITS(grad(y.sum(), {x})[0], grad(f(x * 2.0).sum(), {x})[0]);
  };
  const Tensor mask = gt(random_tensor({4}, DType::float64, here(), 5), 0),
               other = random_tensor({3, 4}, DType::float64, here(), 6, 1, 2);
  check([](T y) { y.clamp_(-0.7, 1.1); }, [](T y) { return clamp(y, -0.7, 1.1); });
  check([&](T y) { y.masked_fill_(mask, 0.5); }, [&](T y) { return masked_fill(y, mask, 0.5); });
  check([](T y) { y.relu_(); }, [](T y) { return relu(y); });
  check([&](T y) { y.div_(other); }, [&](T y) { return y / other; });
  check([](T y) { y.div_(3); }, [](T y) { return y / 3.0; });
  check([](T y) { y.sub_(3); }, [](T y) { return y - 3.0; });
}

TEST_CASE("in place: what cannot be done is refused and changes nothing",
          "[inplace][functions][errors]") {
  const Tensor x = ones({2, 3}), whole = ones({2}, {.dtype = DType::int32}),
               truth = ones({2}, {.dtype = DType::bool_});
  const Tensor leaf = ones({2}).requires_grad_();
  CHECK_THROWS_TEXT(LayoutError,
                    "clamp_: expected a tensor whose elements each have their own memory",
                    ones({1}).expand({3}).clamp_(0));
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { leaf.clamp_(0); }, [&] { leaf.relu_(); }, [&] { leaf.div_(2); },
           [&] { leaf.div_(leaf); }, [&] { leaf.masked_fill_(truth, 0); }, [&] { leaf.sub_(1); }})
    CHECK(thrown<AutogradError>("expected a tensor that is not a leaf requiring grad", call) == "");
  CHECK_THROWS_TEXT(DTypeError, "clamp_: expected bounds that int32 can hold, got 0.5",
                    whole.clamp_(0.5));
  CHECK_THROWS_TEXT(ArgumentError, "clamp_: expected min, max or both, got neither",
                    x.clamp_(std::nullopt));
  CHECK_THROWS_TEXT(DTypeError, "clamp_: expected numbers, got bool", truth.clamp_(0));
  CHECK_THROWS_TEXT(DTypeError, "div_: expected a floating point tensor, got int32", whole.div_(2));
  CHECK_THROWS_TEXT(ShapeError, "div_: expected a shape that broadcasts to [2, 3], got [4, 2, 3]",
                    x.div_(ones({4, 2, 3})));
  CHECK_THROWS_TEXT(DTypeError, "masked_fill_: expected a bool mask, got float32",
                    x.masked_fill_(x, 1));
  CHECK_THROWS_TEXT(ShapeError, "masked_fill_: expected a shape that broadcasts to [2, 3]",
                    x.masked_fill_(ones({4, 1, 3}, {.dtype = DType::bool_}), 1));
  CHECK_THROWS_TEXT(DTypeError, "sub_: expected a number that int32 can hold, got 0.5",
                    whole.sub_(0.5));
  CHECK_THROWS_TEXT(DTypeError, "sub_: expected numbers, got bool", truth.sub_(1));
  CHECK(x.version() == 0);
  CHECK(whole.version() == 0);
  CHECK(leaf.version() == 0);
}

}  // namespace braid::test::on_device
