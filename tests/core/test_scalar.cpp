// Tests of scalars in ops with tensors: an integer stays an exact integer, and decides the dtype as
// in PyTorch.
#include <type_traits>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;  // the first that no double represents

Tensor of(std::int64_t n) { return tensor(Whole{n}); }

}  // namespace

TEST_CASE("scalar: item refuses a number out of the range of its type", "[scalar][errors]") {
  const Tensor nan = tensor(kNan), large = tensor(1e300, {.dtype = DType::float64}),
               inf = tensor(kInf), minus = tensor(-1);
  const char* const text = "Scalar: expected a number in the range of the type, got ";
  CHECK_THROWS_TEXT(DTypeError, str(text, "300"), (void)tensor(300.0).item<std::uint8_t>());
  CHECK_THROWS_TEXT(DTypeError, str(text, "nan"), (void)nan.item<int>());
  CHECK_THROWS_TEXT(DTypeError, str(text, "inf"), (void)inf.item<std::int64_t>());
  CHECK_THROWS_TEXT(DTypeError, str(text, "-1"), (void)minus.item<std::uint64_t>());
  CHECK_THROWS_AS((void)tensor(-1.0).item<unsigned>(), DTypeError);
  CHECK_THROWS_AS((void)of(kMax).item<int>(), DTypeError);
  CHECK_THROWS_AS((void)large.item<float>(), DTypeError);
  CHECK_THROWS_AS((void)large.item<float16>(), DTypeError);
  CHECK((tensor(255.75).item<std::uint8_t>() == 255 && tensor(-0.5).item<unsigned>() == 0));
  CHECK((of(kMax).item<std::uint64_t>() == kMax && of(kMin).item<std::int64_t>() == kMin));
  CHECK((inf.item<float>() == kInf && nan.item<bool>() && std::isnan(nan.item<double>())));
  CHECK((tensor(true).item<int>() == 1 && tensor(1.5).item<bfloat16>() == bfloat16(1.5f)));
}

TEST_CASE("scalar: an int64 beside a tensor is exact", "[scalar]") {
  const Tensor x = of(kOdd), below = of(kOdd - 1), one = of(1), yes = tensor({true}),
               at = tensor(Whole{0});
  check_bools({{eq(x, kOdd), {true}},
               {eq(below, kOdd), {false}},
               {eq(kOdd, below), {false}},
               {ne(below, kOdd), {true}},
               {lt(below, kOdd), {true}},
               {le(of(kOdd + 1), kOdd), {false}},
               {gt(of(kOdd + 1), kOdd), {true}},
               {ge(below, kOdd), {false}},
               {gt(kOdd, below), {true}},
               {eq(of(kMax), kMax), {true}},
               {eq(of(kMax - 1), kMax), {false}},
               {eq(of(kMax), 0x1p63), {false}},
               {lt(of(kMax), 0x1p63), {true}},
               {ge(of(kMin), -0x1p63), {true}}});
  CHECK_FALSE(allclose(x, below, 0, 0));
  CHECK(allclose(x, below, 0, 1));
  check_whole({{full({1}, kOdd, {.dtype = DType::int64}), {kOdd}},
               {full_like(one, kOdd), {kOdd}},
               {full_like(one, kMax), {kMax}},
               {full_like(one, kMin), {kMin}},
               {mul(one, kOdd), {kOdd}},
               {kOdd * one, {kOdd}},
               {add(of(0), kOdd), {kOdd}},
               {sub(of(0), kOdd), {-kOdd}},
               {sub(kOdd, of(0)), {kOdd}},
               {add(of(0), one, kOdd), {kOdd}},
               {sub(of(0), one, kOdd), {-kOdd}},
               {addcmul(of(0), one, one, kOdd), {kOdd}},
               {clamp(of(kMax), 0, kOdd), {kOdd}},
               {clamp(of(0), kOdd), {kOdd}},
               {clamp(of(kMax), std::nullopt, kMax - 1), {kMax - 1}},
               {masked_fill(one, yes, kOdd), {kOdd}},
               {scatter(one, 0, at, kOdd), {kOdd}},
               {index_add(of(0), 0, at, one, kOdd), {kOdd}},
               {where(yes, kOdd, one), {kOdd}},
               {where(logical_not(yes), one, kOdd), {kOdd}},
               {fmod(of(kMax), kOdd), {kMax % kOdd}},
               {remainder(of(kMax), kOdd), {kMax % kOdd}},
               {floor_divide(of(kMax), kOdd), {kMax / kOdd}},
               {pow(kOdd, one), {kOdd}},
               {pad(one, {0, 1}, PadMode::constant, kOdd), {1, kOdd}}});
}

TEST_CASE("scalar: an int64 in place is exact", "[scalar][inplace]") {
  const Tensor yes = tensor({true});
  const auto zero = [] { return zeros({1}, {.dtype = DType::int64}); };
  const auto changed = [](Tensor x, const std::function<void(T)>& f) {
    f(x);
    return x;
  };
  check_whole({{changed(zero(), [](T x) { x.fill_(kOdd); }), {kOdd}},
               {changed(zero(), [](T x) { x.add_(kOdd); }), {kOdd}},
               {changed(zero(), [](T x) { x.sub_(kOdd); }), {-kOdd}},
               {changed(zero(), [](T x) { x.add_(of(1), kOdd); }), {kOdd}},
               {changed(zero(), [](T x) { x.sub_(of(1), kOdd); }), {-kOdd}},
               {changed(of(1), [](T x) { x.mul_(kOdd); }), {kOdd}},
               {changed(zero(), [](T x) { x.clamp_(kOdd); }), {kOdd}},
               {changed(of(kMax), [](T x) { x.clamp_(0, kOdd); }), {kOdd}},
               {changed(zero(), [&](T x) { x.masked_fill_(yes, kOdd); }), {kOdd}}});
}

TEST_CASE("scalar: a number that a 16-bit dtype does not hold is computed in float32", "[scalar]") {
  const auto half = [](float value) { return full({3}, value, {.dtype = DType::float16}); };
  const auto bfloat = [](float value) { return full({3}, value, {.dtype = DType::bfloat16}); };
  const auto changed = [](Tensor x, const std::function<void(T)>& f) {
    f(x);
    return x;
  };
  const auto same = [](const Tensor& x, float value) {
    check_lists({{x.to(DType::float32), {value, value, value}}});
  };
  same(half(35000) / 70000, 0.5f);         // 70000 is infinite in float16
  same(half(0.5f) * 70000, 35008);         // float16 has steps of 32 here
  same(half(60000) * 1e-8, 0x1.3a8p-11f);  // 1e-8 is 0 in float16
  same(70000 / half(2000), 35);
  same(half(-60000) + 70000, 10000);
  same(70000 - half(60000), 10000);
  same(half(60000) - 70000, -10000);
  same(bfloat(256) - 257, -1);  // 257 is 256 in bfloat16
  same(changed(half(35000), [](T x) { x.div_(70000); }), 0.5f);
  same(changed(half(-60000), [](T x) { x.add_(70000); }), 10000);
  same(changed(bfloat(-256), [](T x) { x.add_(257); }), 1);
  // a comparison rounds the number, as in PyTorch
  CHECK(eq(bfloat(256), 257).all().item<bool>());
  Tensor x = half(1).requires_grad_();
  sum(x / 70000).backward();
  same(x.grad(), 0x1.ep-17f);
  Tensor small = half(0.003f).requires_grad_();
  sum(0.01 / small).backward();  // 1 / x² is infinite
  CHECK_CLOSE(small.grad().to(DType::float32), full({3}, -1111.0), (Tolerance{2e-3, 0}));
}

TEST_CASE("scalar: whether it was written 2 or 2.0 decides the dtype, as in PyTorch", "[scalar]") {
  const Tensor m = tensor({true, false}), i = tensor({3, 4}), b = tensor({true, true});
  const auto type = [](T x) { return x.dtype(); };
  CHECK(type(full({2}, 7)) == DType::int64);
  CHECK(type(full({2}, 7.0)) == DType::float32);
  CHECK(type(full({2}, true)) == DType::bool_);
  CHECK(type(full({2}, 7, {.dtype = DType::float32})) == DType::float32);
  CHECK(type(where(m, 1, 0)) == DType::int64);
  CHECK(type(where(m, 1.0, 0)) == DType::float32);
  CHECK(type(where(m, true, false)) == DType::bool_);
  CHECK(type(pow(i, 2)) == DType::int64);
  CHECK(type(pow(i, 2.0)) == DType::float32);
  CHECK(type(pow(2, i)) == DType::int64);
  CHECK(type(pow(2.5, i)) == DType::float32);
  CHECK(type(i * 2) == DType::int64);
  CHECK(type(i * 2.0) == DType::float32);
  CHECK(type(b * 2) == DType::int64);
  CHECK(type(b * true) == DType::bool_);
  CHECK(type(clamp(i, 0, 4)) == DType::int64);
  CHECK(type(clamp(i, 0.0, 4)) == DType::float32);
  check_whole({{pow(i, 2), {9, 16}}, {pow(2, i), {8, 16}}, {pow(i, 0), {1, 1}}});
  check_whole({{where(m, 1, 0), {1, 0}}});
  CHECK_THROWS_TEXT(ArgumentError, "pow: expected an exponent >= 0 for int64, got -1", pow(i, -1));
}

TEST_CASE("scalar: a fraction in an integer tensor is refused", "[scalar][errors]") {
  const Tensor x = tensor({3, 4}), yes = tensor({true, true}), at = tensor({0, 1});
  const std::string text = "expected a number that int64 can hold, got 2.5";
  CHECK_THROWS_TEXT(DTypeError, "fill_: " + text, x.fill_(2.5));
  CHECK_THROWS_TEXT(DTypeError, "full: " + text, full({2}, 2.5, {.dtype = DType::int64}));
  CHECK_THROWS_TEXT(DTypeError, "full_like: " + text, full_like(x, 2.5));
  CHECK_THROWS_TEXT(DTypeError, "masked_fill: " + text, masked_fill(x, yes, 2.5));
  CHECK_THROWS_TEXT(DTypeError, "masked_fill_: " + text, x.masked_fill_(yes, 2.5));
  CHECK_THROWS_TEXT(DTypeError, "scatter: " + text, scatter(x, 0, at, 2.5));
  CHECK(whole(x) == Whole{3, 4});
  CHECK(x.version() == 0);
  CHECK(whole(x.fill_(2.0)) == Whole{2, 2});
}

TEST_CASE("scalar: arange of fractions", "[scalar][create]") {
  check_lists({{arange(0, 10, 2.5), {0, 2.5, 5, 7.5}},
               {arange(0.5, 3), {0.5, 1.5, 2.5}},
               {arange(2.5), {0, 1, 2}},
               {arange(1, 0, -0.25), {1, 0.75, 0.5, 0.25}},
               {arange(0, 1, 0.1),
                {0, float(0.1), float(0.2), float(0.1 * 3), float(0.4), 0.5, float(0.1 * 6),
                 float(0.1 * 7), float(0.8), float(0.9)}},
               {arange(1.0, 1.0), {}}});
  // the numbers of elements are PyTorch's: of the rounded distance
  CHECK(arange(1.0, 1.3, 0.1).numel() == 4);
  CHECK(arange(0.1, 1.3, 0.3).numel() == 4);
  CHECK(arange(0.2, 2.6, 0.3).numel() == 8);
  CHECK(arange(-1.7e308, 1.7e308, 1e308).numel() == 4);
  CHECK(arange(0.5, 3).dtype() == DType::float32);
  CHECK(arange(3.0).dtype() == DType::float32);
  CHECK(arange(3).dtype() == DType::int64);
  CHECK(arange(0, 1, 0.5, {.dtype = DType::float64}).dtype() == DType::float64);
  CHECK(whole(arange(0, 3.0, 1, {.dtype = DType::int64})) == Whole{0, 1, 2});
  CHECK_THROWS_TEXT(DTypeError, "arange: expected whole numbers for int64, got 0.5",
                    arange(0.5, 3, 1, {.dtype = DType::int64}));
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected a step that leads from 0 to 1, got -0.5",
                    arange(0, 1, -0.5));
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected finite numbers, got nan", arange(0, kNan, 1));
  CHECK_THROWS_TEXT(ArgumentError, "arange: expected finite numbers, got inf", arange(kInf));
  CHECK_THROWS_TEXT(ShapeError, "arange: expected at most 2^63 - 1 elements, got 1e+300",
                    arange(0, 1e300, 1.0));
}

TEST_CASE("shape: indices count from the end, and others are refused", "[shape]") {
  const Tensor x = zeros({2, 3, 5});
  CHECK(x.shape()[-1] == 5);
  CHECK(x.shape()[-3] == 2);
  CHECK(x.strides()[-2] == 5);
  CHECK_THROWS_TEXT(IndexError, "shape: expected an index in [-3, 2] for [2, 3, 5], got 3",
                    x.shape()[3]);
  CHECK_THROWS_TEXT(IndexError, "shape: expected an index in [-3, 2] for [2, 3, 5], got -4",
                    x.shape()[-4]);
  CHECK_THROWS_TEXT(IndexError, "shape: expected an index for a shape with sizes, got 0 for []",
                    zeros({}).shape()[0]);
  CHECK_THROWS_AS(zeros({}).shape().back(), IndexError);
}

TEST_CASE("var: a bool after the dims is LibTorch's unbiased", "[statistics]") {
  const Tensor x = tensor({{1.0, 3.0}});
  check_lists({{var(x, {1}, false), {1}},
               {var(x, {1}, true), {2}},
               {var(x, {1}, 0), {1}},
               {var(x, {1}), {2}},
               {var(x, false), {1}},
               {var_mean(x, {1}, false).var, {1}},
               {braid::std(x, {1}, true), {std::sqrt(2.0f)}},
               {braid::std(x, true), {std::sqrt(2.0f)}}});
  check_shapes({{var(x, {1}, 1, true), {1, 1}},
                {var(x, {1}, false, true), {1, 1}},
                {var(x, {1}, false), {1}}});
}

}  // namespace braid::test::on_device
