// allclose and equal.
#include <cmath>
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

TEST_CASE("compare: allclose is |a - b| <= atol + rtol |b|", "[compare]") {
  const Tensor a = tensor({1.0, 100.0}, {.dtype = DType::float64});
  CHECK(allclose(a, a));
  CHECK(allclose(tensor({1.001, 100.1}, {.dtype = DType::float64}), a, 1.1e-3, 0));
  CHECK_FALSE(allclose(tensor({1.001, 100.1}, {.dtype = DType::float64}), a, 0.9e-3, 0));
  CHECK(allclose(tensor({1.05, 100.05}, {.dtype = DType::float64}), a, 0, 0.06));
  CHECK_FALSE(allclose(tensor({1.05, 100.07}, {.dtype = DType::float64}), a, 0, 0.06));
  // rtol counts from b.
  CHECK(allclose(tensor({1.0}), tensor({2.0}), 0.5, 0));
  CHECK_FALSE(allclose(tensor({2.0}), tensor({1.0}), 0.5, 0));
  // the default is 1e-5
  CHECK_FALSE(allclose(a, tensor({1.0, 100.01}, {.dtype = DType::float64})));
  CHECK(allclose(a, tensor({1.0, 100.0001}, {.dtype = DType::float64})));
  CHECK(allclose(zeros({0}), zeros({0})));
  CHECK_FALSE(allclose(zeros({2}), zeros({3})));
  CHECK_FALSE(allclose(zeros({1}), zeros({1, 1})));
  CHECK(allclose(a.expand({3, 2}), a.expand({3, 2}).clone()));
  CHECK(allclose(arange(3), arange(3)));
}

TEST_CASE("compare: NaN is never close, infinities only to themselves", "[compare]") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const std::int64_t n : {1, 17, 100})
    for (const std::int64_t place : {std::int64_t{0}, n - 1}) {
      Array v({n}, 1.0);
      v[place] = std::nan("");
      const Tensor x = tensor_of(v), y = ones({n});
      CHECK_FALSE(allclose(x, x));
      CHECK_FALSE(allclose(x, y));
      CHECK_FALSE(allclose(y, x));
      CHECK_FALSE(equal(x, x));
      v[place] = kInf;
      const Tensor inf = tensor_of(v);
      CHECK(allclose(inf, inf));
      CHECK_FALSE(allclose(y, inf));
      CHECK_FALSE(allclose(inf, y));
      v[place] = -kInf;
      CHECK_FALSE(allclose(tensor_of(v), inf));
      CHECK(equal(inf, inf));
    }
}

TEST_CASE("compare: equal wants the same shape, type and elements", "[compare]") {
  const Tensor a = random_tensor({3, 5});
  CHECK(equal(a, a.clone()));
  CHECK(equal(a.t(), a.t().contiguous()));
  CHECK_FALSE(equal(a, a.to(DType::float64)));
  CHECK_FALSE(equal(a, a.reshape({5, 3})));
  CHECK(equal(zeros({0, 2}), zeros({0, 2})));
  CHECK_FALSE(equal(zeros({0, 2}), zeros({2, 0})));
  CHECK(equal(tensor({0.0}), tensor({-0.0})));
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  CHECK_FALSE(equal(tensor({kBig}), tensor({kBig + 1})));
  for (const std::int64_t n : {1, 16, 33, 1025})
    for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
      const Tensor x = random_tensor({n}), y = x.clone();
      y.slice(0, place, place + 1).add_(0.5);
      CHECK_FALSE(equal(x, y));
    }
}

TEST_CASE("compare: two devices are refused", "[compare][errors]") {
  CHECK_THROWS_TEXT(DeviceError, here("allclose: *cpu:0*cpu:1"),
                    allclose(zeros({2}), zeros({2}, {.device = there()})));
  CHECK_THROWS_TEXT(DeviceError, here("equal: *cpu:0*cpu:1"),
                    equal(zeros({2}), zeros({2}, {.device = there()})));
}

TEST_CASE("compare: with a number that the integers cannot hold", "[compare]") {
  const Tensor i = tensor({1, 2147483647}, {.dtype = DType::int32}),
               u = tensor({44, 255}, {.dtype = DType::uint8});
  const auto none = std::vector<bool>{false, false}, all = std::vector<bool>{true, true};
  CHECK(gt(i, 3e9).to_vector<bool>() == none);
  CHECK(lt(i, 3e9).to_vector<bool>() == all);
  CHECK(eq(u, 300).to_vector<bool>() == none);
  CHECK(eq(u, -1).to_vector<bool>() == none);
  CHECK(gt(u, -1).to_vector<bool>() == all);
  CHECK(gt(arange(2), 1e30).to_vector<bool>() == none);
  CHECK(lt(arange(2), double(INFINITY)).to_vector<bool>() == all);
  CHECK(lt(i, std::nan("")).to_vector<bool>() == none);
  CHECK(gt(tensor({16777217}), 16777216.5).item<bool>());
  CHECK(gt(tensor({true, false}), 0.5).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(eq(tensor({true, false}), 2).to_vector<bool>() == none);
}

TEST_CASE("compare: a difference of truth values is refused", "[compare][errors]") {
  const Tensor b = tensor({true, false}), i = tensor({1, 2});
  CHECK_THROWS_TEXT(DTypeError, "sub: expected numbers, got bool", b - b);
  CHECK_THROWS_TEXT(DTypeError, "sub: expected numbers, got bool", i - b);
  CHECK_THROWS_TEXT(DTypeError, "sub: expected numbers, got bool", b - 1);
  CHECK_THROWS_TEXT(DTypeError, "sub: expected numbers, got bool", 1 - b);
  CHECK_THROWS_TEXT(DTypeError, "sub_: expected numbers, got bool", i.sub_(b));
  CHECK((i + double(INFINITY)).dtype() == DType::float32);
  CHECK((i + double(INFINITY))[0].item<double>() == INFINITY);
  CHECK((tensor({1}, {.dtype = DType::uint8}) + 300).item<int>() == 45);
}

}  // namespace braid::test::on_device
