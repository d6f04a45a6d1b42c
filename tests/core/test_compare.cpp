// Tests of allclose and equal.
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("compare: allclose is |a - b| <= atol + rtol |b|", "[compare]") {
  const auto doubles = [](double x, double y) { return tensor({x, y}, {.dtype = DType::float64}); };
  const Tensor a = doubles(1, 100);
  CHECK((allclose(a, a) && allclose(doubles(1.001, 100.1), a, 1.1e-3, 0)));
  CHECK_FALSE(allclose(doubles(1.001, 100.1), a, 0.9e-3, 0));
  CHECK(allclose(doubles(1.05, 100.05), a, 0, 0.06));
  CHECK_FALSE(allclose(doubles(1.05, 100.07), a, 0, 0.06));
  // rtol is relative to b.
  CHECK(allclose(tensor({1.0}), tensor({2.0}), 0.5, 0));
  CHECK_FALSE(allclose(tensor({2.0}), tensor({1.0}), 0.5, 0));
  // the default rtol is 1e-5
  CHECK_FALSE(allclose(a, doubles(1, 100.01)));
  CHECK((allclose(a, doubles(1, 100.0001)) && allclose(zeros({0}), zeros({0}))));
  // shapes broadcast
  CHECK((allclose(a.expand({3, 2}), a) && allclose(zeros({1}), zeros({2, 1}))));
  CHECK((allclose(arange(3).reshape({3, 1}), arange(3), 0, 2) && allclose(zeros({0}), ones({1}))));
  CHECK_FALSE((allclose(a, ones({})) || allclose(arange(3).reshape({3, 1}), arange(3), 0, 1)));
  // infinity times 0 is NaN: only equal numbers are close
  CHECK((allclose(tensor({0, 5}), tensor({0, 4}), kInf) && allclose(zeros({1}), zeros({1}), kInf)));
  CHECK_FALSE((allclose(tensor({1}), tensor({0}), kInf) || allclose(ones({1}), zeros({1}), kInf)));
  CHECK_THROWS_TEXT(ShapeError, "allclose: ", (void)allclose(zeros({2}), zeros({3})));
  CHECK((allclose(a.expand({3, 2}), a.expand({3, 2}).clone()) && allclose(arange(3), arange(3))));
}

TEST_CASE("compare: NaN is never close, infinities only to themselves", "[compare]") {
  for (const std::int64_t n : {1, 17, 100})
    for (const std::int64_t place : {std::int64_t{0}, n - 1}) {
      Array v({n}, 1.0);
      v[place] = std::nan("");
      const Tensor x = tensor_of(v), y = ones({n});
      CHECK_FALSE((allclose(x, x) || allclose(x, y) || allclose(y, x)));
      CHECK_FALSE(equal(x, x));
      v[place] = kInf;
      const Tensor inf = tensor_of(v);
      CHECK(allclose(inf, inf));
      CHECK_FALSE((allclose(y, inf) || allclose(inf, y)));
      v[place] = -kInf;
      CHECK_FALSE(allclose(tensor_of(v), inf));
      CHECK(equal(inf, inf));
    }
}

TEST_CASE("compare: equal wants the same shape, type and elements", "[compare]") {
  const Tensor a = random_tensor({3, 5});
  CHECK((equal(a, a.clone()) && equal(a.t(), a.t().contiguous())));
  CHECK_FALSE((equal(a, a.to(DType::float64)) || equal(a, a.reshape({5, 3}))));
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
               u = tensor({44, 255}, {.dtype = DType::uint8}), b = tensor({true, false});
  const Bools none{false, false}, all{true, true};
  check_bools({{gt(i, 3e9), none},
               {lt(i, 3e9), all},
               {eq(u, 300), none},
               {eq(u, -1), none},
               {gt(u, -1), all},
               {gt(arange(2), 1e30), none},
               {lt(arange(2), kInf), all},
               {lt(i, kNan), none},
               {gt(tensor({16777217}), 16777216.5), {true}},
               {gt(b, 0.5), {true, false}},
               {eq(b, 2), none}});
  CHECK((i + kInf).dtype() == DType::float32);
  CHECK(list(i + kInf)[0] == kInf);
  CHECK(list(u + 300)[0] == (44 + 300) % 256);
}

TEST_CASE("compare: a difference of truth values is refused", "[compare][errors]") {
  const Tensor b = tensor({true, false}), i = tensor({1, 2});
  for (const std::function<void()>& f :
       std::vector<std::function<void()>>{[&] { (void)(b - b); }, [&] { (void)(i - b); },
                                          [&] { (void)(b - 1); }, [&] { (void)(1 - b); }})
    CHECK(thrown<DTypeError>("sub: expected numbers, got bool", f) == "");
  CHECK_THROWS_TEXT(DTypeError, "sub_: expected numbers, got bool", i.sub_(b));
}

}  // namespace braid::test::on_device
