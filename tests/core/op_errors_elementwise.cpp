#include <cmath>

#include <braid/core/ops/elementwise.hpp>

#include "op_errors.hpp"

namespace braid::test::on_device {
namespace {

using Function1 = Tensor (*)(const Tensor&);
using Function2 = Tensor (*)(const Tensor&, const Tensor&);

const char* const kTooLarge = "expected at most 2\\^63 - 1 bytes";
const char* const kBroadcast = "expected shapes that broadcast";

/// What every function of two tensors refuses of either.
void add_pair(std::vector<OpCase>& list, const char* op, Function2 f) {
  const auto left = [f](const Tensor& a) { return f(a, random_tensor({3})); };
  const auto right = [f](const Tensor& b) { return f(random_tensor({2, 3}), b); };
  BadInputs(list, op)
      .of("a")
      .undefined(left)
      .elsewhere(left, {2, 3})
      .shapes(left, {{2}, {3, 4}}, kBroadcast)
      .no_room([f](const Tensor& a) { return f(a, random_tensor({})); });
  BadInputs(list, op)
      .of("b")
      .undefined(right)
      .elsewhere(right, {2, 3})
      .shapes(right, {{2}, {2, 2}, {0, 1}}, kBroadcast)
      .refused("ShapeError", kTooLarge, [f] {
        return f(huge({}, std::int64_t{1} << 32).unsqueeze(1), huge({}, std::int64_t{1} << 32));
      });
}

void add_alpha(std::vector<OpCase>& list, const char* op,
               Tensor (*f)(const Tensor&, const Tensor&, double)) {
  const auto of_integers = [f](double alpha) {
    return f(random_tensor({3}, DType::int64), random_tensor({3}, DType::int32), alpha);
  };
  BadInputs(list, op).of("alpha").values<double>(of_integers, {0.5, NAN, INFINITY, 1e300},
                                                 "DTypeError",
                                                 "expected a whole alpha for int64, got ");
}

}  // namespace

void add_elementwise_errors(std::vector<OpCase>& list) {
  using T = const Tensor&;
  add_pair(list, "add", [](T a, T b) { return add(a, b); });
  add_pair(list, "sub", [](T a, T b) { return sub(a, b); });
  add_pair(list, "mul", mul);
  add_pair(list, "div", div);
  add_pair(list, "maximum", maximum);
  add_pair(list, "minimum", minimum);
  add_pair(list, "eq", eq);
  add_pair(list, "ne", ne);
  add_pair(list, "lt", lt);
  add_pair(list, "le", le);
  add_pair(list, "gt", gt);
  add_pair(list, "ge", ge);
  add_alpha(list, "add", add);
  add_alpha(list, "sub", sub);
  for (const char* which : {"a", "b"}) {
    const bool left = which[0] == 'a';
    const auto with_bool = [left](T x) {
      return left ? sub(x, random_tensor({3})) : sub(random_tensor({3}), x);
    };
    BadInputs(list, "sub")
        .of(which)
        .types(with_bool, {3}, {DType::bool_}, "expected numbers, got bool");
  }

  const auto condition = [](T c) { return where(c, random_tensor({2, 3}), random_tensor({3})); };
  BadInputs(list, "where")
      .of("condition")
      .undefined(condition)
      .elsewhere(condition, {2, 3}, DType::bool_)
      .types(condition, {2, 3}, {DType::uint8, DType::int64, DType::float32},
             "expected a bool condition, got ")
      .shapes(condition, {{2}, {4, 3}}, kBroadcast, "ShapeError", DType::bool_);
  const auto chosen = [](T a) {
    return where(random_tensor({2, 3}, DType::bool_), a, random_tensor({3}));
  };
  BadInputs(list, "where")
      .of("a")
      .undefined(chosen)
      .elsewhere(chosen, {2, 3})
      .shapes(chosen, {{2}, {2, 4}}, kBroadcast);
  const auto other = [](T b) {
    return where(random_tensor({2, 3}, DType::bool_), random_tensor({3}), b);
  };
  BadInputs(list, "where")
      .of("b")
      .undefined(other)
      .elsewhere(other, {2, 3})
      .shapes(other, {{2}, {2, 4}}, kBroadcast);

  struct Unary {
    const char* op;
    Function1 f;
    bool of_numbers;  // refuses bool; the others convert it
  };
  for (const Unary& u : std::vector<Unary>{{"neg", neg, true},
                                           {"abs", abs, true},
                                           {"sign", sign, true},
                                           {"relu", relu, true},
                                           {"square", square, true},
                                           {"exp", exp, false},
                                           {"log", log, false},
                                           {"sqrt", sqrt, false},
                                           {"rsqrt", rsqrt, false},
                                           {"reciprocal", reciprocal, false},
                                           {"tanh", tanh, false},
                                           {"sigmoid", sigmoid, false},
                                           {"sin", sin, false},
                                           {"cos", cos, false},
                                           {"pow", [](T x) { return pow(x, 3); }, false}}) {
    BadInputs bad(list, u.op);
    bad.of("x").undefined(u.f).no_room(u.f);
    if (u.of_numbers) bad.types(u.f, {3}, {DType::bool_}, "expected numbers, got bool");
    else bad.too_large(u.f);
  }
  BadInputs(list, "pow").free("exponent", "every number is an exponent, NaN and infinities too");
}

}  // namespace braid::test::on_device
