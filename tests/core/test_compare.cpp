// allclose and equal.
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test {

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
  CHECK_FALSE(allclose(a, tensor({1.0, 100.01}, {.dtype = DType::float64})));  // the default is 1e-5
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
  CHECK_THROWS_TEXT(DeviceError, "allclose: *cpu:0*cpu:1", allclose(zeros({2}), zeros({2}, {.device = Device("cpu:1")})));
  CHECK_THROWS_TEXT(DeviceError, "equal: *cpu:0*cpu:1", equal(zeros({2}), zeros({2}, {.device = Device("cpu:1")})));
}

}  // namespace braid::test
