// Cases of arithmetic of two tensors, and of a tensor and a number.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/binary.hpp"

namespace braid::test {
namespace {

const Function2 kArithmetic[] = {
    {"add", [](T a, T b) { return add(a, b); }, [](double a, double b) { return a + b; }, kAll},
    {"sub", [](T a, T b) { return a - b; }, [](double a, double b) { return a - b; }, kNumbers},
    {"mul", [](T a, T b) { return a * b; }, [](double a, double b) { return a * b; }, kAll},
    {"div", [](T a, T b) { return a / b; }, [](double a, double b) { return a / b; }, kAll,
     Kind::value, Kind::nonzero},
    {"maximum", maximum, reference::larger, kAll, Kind::distinct, Kind::distinct},
    {"minimum", minimum, reference::smaller, kAll, Kind::distinct, Kind::distinct},
};

/// An op on two tensors with a scale factor.
struct Scaled {
  const char *op, *variant, *torch;
  Sizes b;
  Tensor (*call)(T, T);
  Of2 expected;
  const Types& dtypes;
};
const Scaled kScaled[] = {
    {"add", "alpha 2", "torch.add(x0, x1, alpha=2)", Sizes{3},
     [](T a, T b) { return add(a, b, 2); }, [](double a, double b) { return a + 2 * b; }, kSigned},
    {"sub", "alpha -0.5", "torch.sub(x0, x1, alpha=-0.5)", Sizes{3},
     [](T a, T b) { return sub(a, b, -0.5); }, [](double a, double b) { return a + 0.5 * b; },
     kFloats},
    {"mul", "one tensor twice", "x0 * x0 + x1 * 0", Sizes{1},
     [](T a, T b) { return a * a + b * 0; }, [](double a, double) { return a * a; }, kSigned},
};

struct WithNumber {
  const char *op, *variant, *torch;
  Tensor (*call)(T);
  double (*expected)(double);
  const Types& dtypes;
  Kind kind = Kind::value;
  Accuracy accuracy = Accuracy::exact;
};
const WithNumber kWithNumbers[] = {
    {"add", "a number to it", "torch.add(x0, 1.5)", [](T a) { return add(a, 1.5); },
     [](double x) { return x + 1.5; }, kFloats},
    {"add", "a whole number", "3 + x0", [](T a) { return 3 + a; }, [](double x) { return x + 3; },
     kNumbers},
    {"sub", "a number from it", "x0 - 0.5", [](T a) { return a - 0.5; },
     [](double x) { return x - 0.5; }, kFloats},
    {"sub", "it from a number", "0.5 - x0", [](T a) { return 0.5 - a; },
     [](double x) { return 0.5 - x; }, kFloats},
    {"sub", "it from a whole number", "2 - x0", [](T a) { return 2 - a; },
     [](double x) { return 2 - x; }, kNumbers},
    {"mul", "by a number", "x0 * -0.5", [](T a) { return a * -0.5; },
     [](double x) { return x * -0.5; }, kFloats},
    {"mul", "by a whole number", "3 * x0", [](T a) { return 3 * a; },
     [](double x) { return x * 3; }, kNumbers},
    {"div", "by 4", "x0 / 4", [](T a) { return a / 4.0; }, [](double x) { return x / 4; },
     kNumbers},
    {"div", "by 3", "x0 / 3", [](T a) { return a / 3.0; }, [](double x) { return x / 3; }, kNumbers,
     Kind::value, Accuracy::ulps},  // may be computed as x * (1 / 3)
    {"div", "a number by it", "3 / x0", [](T a) { return 3.0 / a; }, [](double x) { return 3 / x; },
     kNumbers, Kind::nonzero, Accuracy::ulps},
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

const Unary kRemainders[] = {
    {"fmod", "with a number", "torch.fmod(x0, 2)", [](T a) { return fmod(a, 2); },
     [](double a) { return std::fmod(a, 2.0); }},
    {"remainder", "with a number", "torch.remainder(x0, 2)", [](T a) { return remainder(a, 2); },
     [](double a) { return reference::remainder(a, 2); }},
    {"remainder", "number first", "torch.remainder(torch.full((), 7, dtype=x0.dtype), x0)",
     [](T a) { return remainder(7, a); }, [](double a) { return reference::remainder(7, a); },
     Kind::nonzero},
    {"floor_divide", "with a number", "torch.div(x0, 2, rounding_mode='floor')",
     [](T a) { return floor_divide(a, 2); },
     [](double a) { return reference::floor_divide(a, 2); }},
};

}  // namespace

void add_binary_cases(Cases& list) {
  for (const Function2& f : kArithmetic)
    add_binary(list, f, f.op[0] == 'd' ? floating : same, true);
  for (const Scaled& f : kScaled) {
    OpCase& c = push(list, f.op, f.variant, f.torch, {{{2, 3}}, {f.b}}, f.dtypes,
                     f.op[0] == 'm' ? Accuracy::tolerance : Accuracy::exact);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
  }
  for (const WithNumber& f : kWithNumbers) {
    OpCase& c = of_numbers(list, f.op, f.variant, f.torch, f.kind, f.dtypes, f.accuracy, f.call,
                           f.expected);
    if (f.op[0] == 'd') c.result = floating;
  }
  for (const Binary& f : kFunctions) {
    add_binary(list, f, true);
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
  for (const char* op : {"add", "sub"}) {
    const auto scaled = [plus = op[0] == 'a'](double alpha) {
      const Tensor a = made({3}, DType::int64), b = made({3}, DType::int32);
      return plus ? add(a, b, alpha) : sub(a, b, alpha);
    };
    BadInputs(list, op).numbers("alpha", {0.5, kNan, kInf, 1e300}, kType,
                                "a whole alpha for int64, got ", scaled);
  }
  const auto bools = [](T x) { return sub(x, made({3})); };
  const auto from_bools = [](T x) { return sub(made({3}), x); };
  BadInputs(list, "sub", "a").types(bools, {3}, {DType::bool_}, "numbers, got bool");
  BadInputs(list, "sub", "b").types(from_bools, {3}, {DType::bool_}, "numbers, got bool");
  parameters(list, "add(a b alpha) add(a b) sub(a b alpha) sub(a b)");
}

}  // namespace braid::test
