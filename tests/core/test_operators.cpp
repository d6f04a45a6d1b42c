// Tests of the operators: each is the function that its header names, for two tensors, a tensor and
// a number, and a number and a tensor; and the assignments, which change a tensor in place.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

/// An operator, and the function that it is.
struct Operator {
  const char* name;
  std::function<Tensor(T, T)> of_tensors, function;
  std::function<Tensor(T, const Scalar&)> with_number, number_function;
  /// null: there is no such operator
  std::function<Tensor(const Scalar&, T)> number_first, number_first_function;
  bool integers = false;  ///< for integers only
};

#define OPERATOR(op, f, ...)                     \
  {#op,                                          \
   [](T a, T b) { return a op b; },              \
   [](T a, T b) { return f(a, b); },             \
   [](T a, const Scalar& b) { return a op b; },  \
   [](T a, const Scalar& b) { return f(a, b); }, \
   [](const Scalar& a, T b) { return a op b; },  \
   [](const Scalar& a, T b) { return f(a, b); }, \
   __VA_ARGS__}
const Operator kOperators[] = {
    OPERATOR(==, eq),
    OPERATOR(!=, ne),
    OPERATOR(<, lt),
    OPERATOR(<=, le),
    OPERATOR(>, gt),
    OPERATOR(>=, ge),
    OPERATOR(%, remainder),
    OPERATOR(&, bitwise_and, true),
    OPERATOR(|, bitwise_or, true),
    OPERATOR(^, bitwise_xor, true),
    {"<<", [](T a, T b) { return a << b; }, [](T a, T b) { return bitwise_left_shift(a, b); },
     [](T a, const Scalar& b) { return a << b; },
     [](T a, const Scalar& b) { return bitwise_left_shift(a, b); }, nullptr, nullptr, true},
    {">>", [](T a, T b) { return a >> b; }, [](T a, T b) { return bitwise_right_shift(a, b); },
     [](T a, const Scalar& b) { return a >> b; },
     [](T a, const Scalar& b) { return bitwise_right_shift(a, b); }, nullptr, nullptr, true},
};
#undef OPERATOR

struct Assignment {
  const char* name;
  std::function<T(T, T)> assign;
  std::function<T(T, const Scalar&)> assign_number;
  std::function<Tensor(T, T)> function;
  bool integers = false, floating = false;
};
const Assignment kAssignments[] = {
    {"+=", [](T a, T b) -> T { return a += b; }, [](T a, const Scalar& b) -> T { return a += b; },
     [](T a, T b) { return a + b; }},
    {"-=", [](T a, T b) -> T { return a -= b; }, [](T a, const Scalar& b) -> T { return a -= b; },
     [](T a, T b) { return a - b; }},
    {"*=", [](T a, T b) -> T { return a *= b; }, [](T a, const Scalar& b) -> T { return a *= b; },
     [](T a, T b) { return a * b; }},
    {"/=", [](T a, T b) -> T { return a /= b; }, [](T a, const Scalar& b) -> T { return a /= b; },
     [](T a, T b) { return a / b; }, false, true},
    {"%=", [](T a, T b) -> T { return a %= b; }, [](T a, const Scalar& b) -> T { return a %= b; },
     [](T a, T b) { return a % b; }},
    {"&=", [](T a, T b) -> T { return a &= b; }, [](T a, const Scalar& b) -> T { return a &= b; },
     [](T a, T b) { return a & b; }, true},
    {"|=", [](T a, T b) -> T { return a |= b; }, [](T a, const Scalar& b) -> T { return a |= b; },
     [](T a, T b) { return a | b; }, true},
    {"^=", [](T a, T b) -> T { return a ^= b; }, [](T a, const Scalar& b) -> T { return a ^= b; },
     [](T a, T b) { return a ^ b; }, true},
    {"<<=", [](T a, T b) -> T { return a <<= b; },
     [](T a, const Scalar& b) -> T { return a <<= b; }, [](T a, T b) { return a << b; }, true},
    {">>=", [](T a, T b) -> T { return a >>= b; },
     [](T a, const Scalar& b) -> T { return a >>= b; }, [](T a, T b) { return a >> b; }, true},
};

/// Returns 3, 4, 5, … of a shape.
Tensor numbers(const Shape& shape, DType dtype) {
  return arange(3, 3 + shape.numel(), 1, {.dtype = dtype}).reshape(shape);
}

}  // namespace

TEST_CASE("operators: each is its function, for tensors and for numbers on both sides",
          "[operators]") {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{2, 3}, {2, 3}}, {{2, 1}, {3}}, {{}, {2, 2}}, {{0, 3}, {3}}};
  for (const Operator& f : kOperators)
    for (const DType t : {DType::int32, DType::int64, DType::uint8, DType::float32}) {
      if (f.integers && is_floating(t)) continue;
      INFO(f.name << " of " << t);
      for (const auto& [a, b] : shapes) {
        const Tensor x = numbers(a, t), y = numbers(b, t);
        CHECK_SAME_BITS(f.of_tensors(x, y), f.function(x, y));
      }
      const Tensor x = numbers({3, 2}, t).t();  // strided
      CHECK_SAME_BITS(f.with_number(x, 4), f.number_function(x, 4));
      if (f.number_first) CHECK_SAME_BITS(f.number_first(4, x), f.number_first_function(4, x));
    }
}

TEST_CASE("operators: comparisons and logic of small tensors", "[operators]") {
  const Tensor x = tensor({1, 2, 3}), y = tensor({3, 2, 1});
  check_bools({{x == y, {false, true, false}},
               {x != y, {true, false, true}},
               {x < y, {true, false, false}},
               {x <= 2, {true, true, false}},
               {2 <= x, {false, true, true}},
               {(x > 1) & (x < 3), {false, true, false}},
               {(x == 1) | (x == 3), {true, false, true}},
               {(x > 1) ^ (x < 3), {true, false, true}},
               {!(x > 1), {true, false, false}},
               {~(x > 1), {true, false, false}},
               {!x, {false, false, false}}});
  check_whole({{x & 2, {0, 2, 2}},
               {1 | x, {1, 3, 3}},
               {x ^ y, {2, 0, 2}},
               {~x, {-2, -3, -4}},
               {~tensor({0, 255}, {.dtype = DType::uint8}), {255, 0}},
               {x << 2, {4, 8, 12}},
               {(-8 * x) >> 1, {-4, -8, -12}},
               {bitwise_left_shift(1, x), {2, 4, 8}},
               {bitwise_right_shift(16, x), {8, 4, 2}},
               {-x % 2, {1, 0, 1}},
               {7 % x, {0, 1, 1}},
               {+x, {1, 2, 3}},
               {tensor({true, false}) & 3, {1, 0}}});
  check_lists({{tensor({-1.5, 5.0}) % 2, {0.5, 1}}, {5.5 % tensor({2.0}), {1.5}}});
  const Tensor big = tensor({kMin, kMax});
  check_whole({{big & kMax, {0, kMax}}, {big ^ -1, {kMax, kMin}}, {~big, {kMax, kMin}}});
}

TEST_CASE("operators: the gradient of % with a number first", "[operators]") {
  CHECK(gradient_at([](T x) { return 7 % x; }, {2, -2, 3}) == List{-3, 4, -2});
}

TEST_CASE("operators: what has no bits is refused", "[operators][errors]") {
  const Tensor x = ones({2}), i = tensor({1, 2}), b = i > 1;
  CHECK_THROWS_TEXT(DTypeError, "bitwise_and: expected integers or bools, got float32",
                    (void)(x & x));
  CHECK_THROWS_TEXT(DTypeError, "bitwise_or: expected integers or bools, got float32",
                    (void)(i | 1.5));
  CHECK_THROWS_TEXT(DTypeError, "bitwise_not: expected integers or bools, got float32", (void)~x);
  CHECK_THROWS_TEXT(DTypeError, "bitwise_left_shift: expected integers, got bool", (void)(b << b));
  CHECK_THROWS_TEXT(DTypeError, "positive: expected numbers, got bool", (void)+b);
}

TEST_CASE("operators: a tensor as a condition", "[operators]") {
  const Tensor x = tensor({1, 2, 3});
  CHECK((all(x > 0) && !any(x > 3)));
  if (x[0] == 1) CHECK(true);
  else FAIL_CHECK("x[0] == 1");
  CHECK(static_cast<bool>(tensor({{kNan}})));
  CHECK_FALSE(static_cast<bool>(zeros({1, 1})));
  const auto decide = [](T t) { return static_cast<bool>(t); };
  CHECK_THROWS_TEXT(ShapeError, "operator bool: expected a tensor with one element, got shape [3]*",
                    decide(x == x));
  CHECK_THROWS_TEXT(ShapeError, "operator bool: *got shape [0]*", decide(zeros({0})));
  CHECK_THROWS_AS(decide(Tensor()), ArgumentError);
}

TEST_CASE("operators: an assignment changes the tensor in place", "[operators]") {
  for (const Assignment& f : kAssignments)
    for (const DType t : {DType::int32, DType::uint8, DType::float32}) {
      if ((f.integers && is_floating(t)) || (f.floating && !is_floating(t))) continue;
      INFO(f.name << " of " << t);
      const Tensor row = numbers({3}, t), start = numbers({2, 3}, t);
      for (const bool number : {false, true}) {
        const Tensor x = start.clone(), same = x;
        const Tensor other = number ? full({}, 2, {.dtype = t}) : row;
        const std::uint64_t version = x.version();
        const Tensor& returned = number ? f.assign_number(x, 2) : f.assign(x, row);
        CHECK((returned.id() == x.id() && same.id() == x.id() && x.version() > version));
        CHECK_SAME_BITS(x, f.function(start, other));
      }
      const Tensor x = start.clone();
      f.assign(x.t()[1], row[1]);  // a view of x
      CHECK_SAME_BITS(x.t()[1].contiguous(), f.function(start.t()[1], row[1]).contiguous());
      CHECK_SAME_BITS(x.t()[0].contiguous(), start.t()[0].contiguous());
    }
}

TEST_CASE("operators: an assignment is recorded, and refused as in-place ops are",
          "[operators][errors]") {
  const Tensor w = tensor({2.0, 3.0}).requires_grad_(), v = tensor({5.0, 7.0}).requires_grad_();
  const Tensor y = w * 1;
  y += v;
  y *= v;
  y %= 100;
  y.sum().backward();
  CHECK(list(y) == List{35, 70});
  CHECK(list(w.grad()) == List{5, 7});
  CHECK(list(v.grad()) == List{12, 17});
  const Tensor remainder = zeros({2}) + 7, divisor = tensor({2.0, 3.0}).requires_grad_();
  remainder %= divisor;  // only the divisor requires a gradient
  remainder.sum().backward();
  CHECK(list(divisor.grad()) == List{-3, -2});
  CHECK_THROWS_TEXT(AutogradError, "add_: expected a tensor that is not a leaf requiring grad*",
                    w += 1);
  CHECK_THROWS_TEXT(AutogradError, "remainder_: expected a tensor that is not a leaf*", w %= 2);
  const Tensor i = tensor({1, 2});
  CHECK_THROWS_TEXT(DTypeError, "remainder_: expected a result that int64 can hold, got float32",
                    i %= 1.5);
  CHECK_THROWS_TEXT(DTypeError, "bitwise_or_: expected a result that bool can hold, got int64",
                    (i > 1) |= i);
  CHECK_THROWS_TEXT(ShapeError, "remainder_: expected a result of shape [2], got [3, 2]",
                    i %= ones({3, 1}).to(DType::int64));
  CHECK_THROWS_AS(zeros({2, 3}).t().reshape({6}) += 1, LayoutError);  // a copy that nothing holds
  CHECK(whole(i) == Whole{1, 2});
}

TEST_CASE("operators: == compares elements, is_same compares handles", "[operators]") {
  const Tensor x = ones({2}), same = x, copy = x.clone();
  CHECK((x.is_same(same) && !x.is_same(copy) && !x.is_same(Tensor()) && Tensor().is_same({})));
  CHECK(all(x == copy));
}

}  // namespace braid::test::on_device
