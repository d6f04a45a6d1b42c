// Cases of functions of two and three tensors: powers, remainders, logic, masks, weighted sums.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/functions.hpp"

namespace braid::test {
namespace {

const char* const kUndefined = "tensor: expected a defined tensor, got an undefined one";

struct Binary {
  const char *op, *torch;
  Tensor (*call)(T, T);
  Of2 expected;
  const Types& dtypes;
  Kind a = Kind::value, b = Kind::value;
  Accuracy accuracy = Accuracy::exact;
  DType (*result)(DType) = same;
};
const Binary kFunctions[] = {
    {"pow", "torch.pow(x0, x1)", pow,
     [](double a, double b) { return static_cast<double>(std::pow(L{a}, L{b})); }, kFloats,
     Kind::positive, Kind::value, Accuracy::ulps},
    {"atan2", "torch.atan2(x0, x1)", atan2,
     [](double a, double b) { return static_cast<double>(std::atan2(L{a}, L{b})); }, kAll,
     Kind::nonzero, Kind::nonzero, Accuracy::ulps, floating},
    {"fmod", "torch.fmod(x0, x1)", fmod, [](double a, double b) { return std::fmod(a, b); },
     kNumbers, Kind::value, Kind::nonzero},
    {"remainder", "torch.remainder(x0, x1)", remainder, reference::remainder, kNumbers, Kind::value,
     Kind::nonzero},
    {"floor_divide", "torch.div(x0, x1, rounding_mode='floor')", floor_divide,
     reference::floor_divide, kNumbers, Kind::value, Kind::nonzero},
    {"xlogy", "torch.xlogy(x0, x1)", xlogy,
     [](double a, double b) { return a == 0 ? 0 : static_cast<double>(L{a} * std::log(L{b})); },
     kAll, Kind::value, Kind::positive, Accuracy::tolerance, floating},
};
const Binary kLogic[] = {
    {"logical_and", "torch.logical_and(x0, x1)", logical_and,
     [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, kAll},
    {"logical_or", "torch.logical_or(x0, x1)", logical_or,
     [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, kAll},
    {"logical_xor", "torch.logical_xor(x0, x1)", logical_xor,
     [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, kAll},
};

/// Adds cases with equal shapes, broadcasting on both sides, rank 0, one element and no element,
/// and the bad inputs of any op on two tensors.
void add_two(Cases& list, const Binary& f, bool differentiable) {
  const struct {
    const char* variant;
    Sizes a, b;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"broadcast", {2, 1, 3}, {4, 1}},
                {"rank 0", {}, {2, 2}},
                {"one element", {1}, {1}},
                {"empty", {0, 3}, {3}}};
  for (const auto& s : shapes) {
    OpCase& c =
        push(list, f.op, s.variant, f.torch, {{s.a, f.a}, {s.b, f.b}}, f.dtypes, f.accuracy);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
    c.differentiable = differentiable;
    c.result = differentiable ? f.result : boolean;
  }
  const auto bad = [&](const char* which, const Shape& a, const Shape& b) {
    refuse(list, f.op,
           {{which, kShape, ".*got", [=, call = f.call] { call(ones_of(a), ones_of(b)); }}});
  };
  const auto call = f.call;
  BadInputs(list, f.op, "a")
      .refused(kArgument, kUndefined, [call] { return call(Tensor(), ones_of({2})); })
      .of("b")
      .refused(kArgument, kUndefined, [call] { return call(ones_of({2}), Tensor()); });
  bad("a", {2, 3}, {3, 2});
  bad("a", {4}, {2, 3});
  bad("b", {0}, {2});
  bad("b", {3, 2}, {2, 2, 2});
}

const Unary kRemainders[] = {
    {"fmod", "with a number", "torch.fmod(x0, 2)", [](T a) { return fmod(a, 2); },
     [](double a) { return std::fmod(a, 2.0); }},
    {"remainder", "with a number", "torch.remainder(x0, 2)", [](T a) { return remainder(a, 2); },
     [](double a) { return reference::remainder(a, 2); }},
    {"floor_divide", "with a number", "torch.div(x0, 2, rounding_mode='floor')",
     [](T a) { return floor_divide(a, 2); },
     [](double a) { return reference::floor_divide(a, 2); }},
};
const Unary kComparisons[] = {
    {"ne", "with a number", "torch.ne(x0, 1)", [](T a) { return ne(a, 1); },
     [](double a) { return a != 1 ? 1.0 : 0.0; }},
    {"le", "with a number", "torch.le(x0, 1)", [](T a) { return le(a, 1); },
     [](double a) { return a <= 1 ? 1.0 : 0.0; }},
    {"ge", "with a number", "torch.ge(x0, 1)", [](T a) { return ge(a, 1); },
     [](double a) { return a >= 1 ? 1.0 : 0.0; }},
    {"eq", "number first", "1 == x0", [](T a) { return eq(1, a); },
     [](double a) { return 1 == a ? 1.0 : 0.0; }},
    {"ne", "number first", "1 != x0", [](T a) { return ne(1, a); },
     [](double a) { return 1 != a ? 1.0 : 0.0; }},
    {"lt", "number first", "1 < x0", [](T a) { return lt(1, a); },
     [](double a) { return 1 < a ? 1.0 : 0.0; }},
    {"le", "number first", "1 <= x0", [](T a) { return le(1, a); },
     [](double a) { return 1 <= a ? 1.0 : 0.0; }},
    {"gt", "number first", "1 > x0", [](T a) { return gt(1, a); },
     [](double a) { return 1 > a ? 1.0 : 0.0; }},
    {"ge", "number first", "1 >= x0", [](T a) { return ge(1, a); },
     [](double a) { return 1 >= a ? 1.0 : 0.0; }},
};

void add_masks(Cases& list) {
  for (const bool first : {false, true}) {
    OpCase& c = push(list, "where", first ? "number where true" : "number where false",
                     first ? "torch.where(x0, 2, x1)" : "torch.where(x0, x1, 2)",
                     {{{2, 1}, Kind::boolean}, {{2, 3}}}, kNumbers);
    c.call = function_of([first](T m, T a) { return first ? where(m, 2, a) : where(m, a, 2); });
    c.expected = expecting([first](A m, A a) {
      return reference::zip(m, a,
                            [first](double p, double x) { return (p != 0) == first ? 2 : x; });
    });
  }
  const struct {
    const char* variant;
    Sizes x, mask;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"both broadcast", {2, 1}, {2, 1, 3}},
                {"empty", {0, 3}, {3}},
                {"one element", {1}, {1}}};
  for (const auto& s : shapes) {
    OpCase& c = push(list, "masked_fill", s.variant, "x0.masked_fill(x1, 1)",
                     {{s.x}, {s.mask, Kind::boolean}});
    c.call = function_of([](T x, T m) { return masked_fill(x, m, 1); });
    c.expected = zipping([](double v, double p) { return p != 0 ? 1 : v; });
  }
  OpCase& c = push(list, "masked_fill", "a tensor", "x0.masked_fill(x1, x2)",
                   {{{2, 3}}, {{2, 1}, Kind::boolean}, {{}}});
  c.call = function_of([](T x, T m, T v) { return masked_fill(x, m, v); });
  c.expected = expecting([](A x, A m, A value) {
    return reference::zip(x, m, [v = value[0]](double y, double p) { return p != 0 ? v : y; });
  });
  const auto mask = [] { return ones_of({2}, DType::bool_); };
  const auto whole = [] { return ones_of({2}, DType::int32); };
  const auto x = [mask](T t) { return masked_fill(t, mask(), 1); };
  const auto by = [](T m) { return masked_fill(ones_of({2}), m, 1); };
  BadInputs(list, "masked_fill")
      .tensor("x", x)
      .shapes(x, {{3}, {2, 3}}, ".*got")
      .tensor("mask", by)
      .types(by, {2}, {DType::float32, DType::int32}, "a bool mask, got ")
      .tensor("value", [mask](T v) { return masked_fill(ones_of({2}), mask(), v); })
      .is(kShape, "a value of rank 0, got \\[1\\]",
          [=] { return masked_fill(ones_of({2}), mask(), ones_of({1})); })
      .is(kType, "a value that int32 can hold, got float32",
          [=] { return masked_fill(whole(), mask(), ones_of({})); })
      .is(kType, ".*3e\\+09", [=] { return masked_fill(whole(), mask(), 3e9); });
}

struct Of3 {
  const char *op, *first, *second, *third, *torch;
  Tensor (*call)(T, T, T);
  double (*expected)(double, double, double);
  Kind last = Kind::value;
};
const Of3 kSums[] = {
    {"lerp", "a", "b", "weight", "torch.lerp(x0, x1, x2)", lerp,
     [](double a, double b, double w) { return a + w * (b - a); }},
    {"addcmul", "x", "a", "b", "torch.addcmul(x0, x1, x2, value=0.5)",
     [](T x, T a, T b) { return addcmul(x, a, b, 0.5); },
     [](double x, double a, double b) { return x + 0.5 * a * b; }},
    {"addcdiv", "x", "a", "b", "torch.addcdiv(x0, x1, x2, value=0.5)",
     [](T x, T a, T b) { return addcdiv(x, a, b, 0.5); },
     [](double x, double a, double b) { return x + 0.5 * a / b; }, Kind::nonzero},
};

void add_sums(Cases& list) {
  const struct {
    const char* variant;
    Sizes a, b, c;
  } shapes[] = {{"", {2, 3}, {2, 3}, {2, 3}},
                {"broadcast", {2, 1, 3}, {4, 1}, {3}},
                {"empty", {2, 0}, {1}, {}},
                {"whole numbers", {2, 3}, {3}, {2, 1}}};
  for (const Of3& f : kSums) {
    for (const auto& s : shapes) {
      const bool whole = s.variant[0] == 'w';
      if (whole && f.last != Kind::nonzero) continue;
      OpCase& c = push(list, f.op, s.variant, f.torch, {{s.a}, {s.b}, {s.c, f.last}},
                       whole ? kWhole : kFloats, Accuracy::tolerance);
      c.call = function_of(f.call);
      c.expected = expecting([r = f.expected](A x, A y, A z) {
        const Sizes shape = reference::broadcast(x.shape, reference::broadcast(y.shape, z.shape));
        return reference::generate(shape, [&](const Sizes& i) {
          return r(reference::broadcast_value(x, i), reference::broadcast_value(y, i),
                   reference::broadcast_value(z, i));
        });
      });
      if (whole)
        c.result = floating, c.differs = {{"refused", "whole numbers become float32 here"}};
    }
    for (int k = 0; k < 3; ++k) {
      const auto with = [k, call = f.call](T t) {
        const Tensor good = ones_of({2, 3});
        return call(k == 0 ? t : good, k == 1 ? t : good, k == 2 ? t : good);
      };
      BadInputs(list, f.op)
          .tensor(k == 0   ? f.first
                  : k == 1 ? f.second
                           : f.third,
                  with)
          .shapes(with, {{2}, {3, 3}}, ".*got");
    }
    if (f.op[0] == 'a')
      BadInputs(list, f.op).free("value", "every number is a factor, NaN and infinities too");
  }
  for (const double w : {0.25, 0.75}) {
    OpCase& c = push(list, "lerp", str("weight ", w), str("torch.lerp(x0, x1, ", w, ")"),
                     {{{2, 3}}, {{3}}}, kFloats, Accuracy::tolerance);
    c.call = function_of([w](T a, T b) { return lerp(a, b, w); });
    c.expected = expecting([w](A a, A b) {
      return reference::zip(a, b, [w](double x, double y) { return x + w * (y - x); });
    });
  }
}

}  // namespace

void add_binary_function_cases(Cases& list) {
  for (const Binary& f : kFunctions) {
    add_two(list, f, true);
    const std::string op = f.op;
    if (op == "atan2" || op == "xlogy") continue;
    const auto bools = [call = f.call](T b) { return call(b, b); };
    BadInputs(list, op, "a").types(bools, {2}, {DType::bool_}, "numbers, got bool");
  }
  add_unary(
      list,
      {"pow", "integers", "torch.pow(x0, x0 // 3)", [](T a) { return pow(a, floor_divide(a, 3)); },
       [](double a) { return reference::whole_power(a, reference::floor_divide(a, 3)); },
       Kind::nonzero},
      {DType::int32, DType::int64}, Accuracy::exact, same);
  add_unary(list,
            Unary{"pow", "of 1.5", "torch.pow(1.5, x0)", [](T a) { return pow(1.5, a); },
                  [](double a) { return static_cast<double>(std::pow(L{1.5}, L{a})); }},
            kNumbers, Accuracy::ulps);
  for (const Unary& f : kRemainders) add_unary(list, f, kNumbers, Accuracy::exact, same);
  for (const Binary& f : kLogic) add_two(list, f, false);
  for (const Unary& f : kComparisons) add_unary(list, f, kAll, Accuracy::exact, boolean, false);
  add_masks(list);
  add_sums(list);
}

}  // namespace braid::test
