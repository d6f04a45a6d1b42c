// Cases of weighted sums of three tensors.
#include <braid/core/ops/lerp.hpp>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

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

}  // namespace

void add_lerp_cases(Cases& list) {
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
  parameters(list, "addcdiv(x a b value) addcmul(x a b value) lerp(a b weight)");
}

}  // namespace braid::test
