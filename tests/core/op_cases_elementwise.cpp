#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

const char* const kBroadcast = "shapes that broadcast .*got ";

struct Binary {
  const char* op;
  Tensor (*call)(T, T);
  Of2 expected;
  const Types& dtypes;
  Kind a = Kind::value, b = Kind::value;
};

const Binary kArithmetic[] = {
    {"add", [](T a, T b) { return add(a, b); }, [](double a, double b) { return a + b; }, kAll},
    {"sub", [](T a, T b) { return a - b; }, [](double a, double b) { return a - b; }, kNumbers},
    {"mul", [](T a, T b) { return a * b; }, [](double a, double b) { return a * b; }, kAll},
    {"div", [](T a, T b) { return a / b; }, [](double a, double b) { return a / b; }, kAll,
     Kind::value, Kind::nonzero},
    {"maximum", maximum, reference::larger, kAll, Kind::distinct, Kind::distinct},
    {"minimum", minimum, reference::smaller, kAll, Kind::distinct, Kind::distinct},
};
// Values on a coarse grid (integers, or the same tensor twice) would often be equal. Comparisons of
// equal values have a separate test.
const Binary kComparisons[] = {
    {"eq", eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }, kAll},
    {"ne", ne, [](double a, double b) { return a != b ? 1.0 : 0.0; }, kAll},
    {"lt", lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }, kAll},
    {"le", le, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, kAll},
    {"gt", gt, [](double a, double b) { return a > b ? 1.0 : 0.0; }, kAll},
    {"ge", ge, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, kAll},
};

/// Adds cases of equal and broadcast shapes, and the bad inputs of any function of two tensors.
void add_binary(Cases& list, const Binary& f, DType (*result)(DType), bool differentiable) {
  static const struct {
    const char* variant;
    Sizes a, b;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"broadcast right", {2, 3, 2}, {3, 1}},
                {"broadcast left", {3}, {2, 3}},
                {"broadcast both", {2, 1, 3}, {4, 1}},
                {"rank 0", {}, {2, 2}}};
  for (const auto& s : shapes) {
    OpCase& c = push(list, f.op, s.variant, str("torch.", f.op, "(x0, x1)"),
                     {{s.a, f.a}, {s.b, f.b}}, f.dtypes);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
    c.differentiable = differentiable;
    c.kinks = f.a == Kind::distinct;
    c.result = result;
  }
  const auto call = f.call;
  const auto left = [call](T a) { return call(a, made({3})); };
  const auto right = [call](T b) { return call(made({2, 3}), b); };
  BadInputs bad(list, f.op);
  bad.tensor("a", left, {2, 3}).shapes(left, {{2}, {3, 4}}, kBroadcast);
  bad.no_room([call](T a) { return call(a, made({})); });
  bad.tensor("b", right, {2, 3});
  bad.shapes(right, {{2}, {2, 2}, {0, 1}}, kBroadcast)
      .refused(kShape, "expected at most 2\\^63 - 1 bytes",
               [call] { return call(huge({}, I{1} << 32).unsqueeze(1), huge({}, I{1} << 32)); });
}

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
    {"eq", "with a number", "torch.eq(x0, 1)", [](T a) { return eq(a, 1); },
     [](double x) { return x == 1 ? 1.0 : 0.0; }, kAll},
    {"gt", "with a number", "torch.gt(x0, 0)", [](T a) { return gt(a, 0); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }, kAll},
    {"lt", "with a number", "torch.lt(x0, 1)", [](T a) { return lt(a, 1); },
     [](double x) { return x < 1 ? 1.0 : 0.0; }, kAll},
};

struct Exact {
  const char* op;
  Tensor (*call)(T);
  double (*expected)(double);
  Kind kind;
};
const Exact kOfNumbers[] = {
    {"neg", neg, [](double x) { return -x; }, Kind::value},
    {"abs", abs, [](double x) { return std::fabs(x); }, Kind::nonzero},
    {"sign", sign, reference::sign, Kind::nonzero},
    {"relu", relu, [](double x) { return std::max(x, 0.0); }, Kind::nonzero},
    {"square", square, [](double x) { return x * x; }, Kind::value},
};
const Exact kRooted[] = {
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, Kind::positive},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, Kind::nonzero},
};
const Function1 kFunctions[] = {
    {"rsqrt", rsqrt, [](L x) { return 1 / std::sqrt(x); }, Kind::positive},
    {"exp", exp, [](L x) { return std::exp(x); }},
    {"log", log, [](L x) { return std::log(x); }, Kind::positive},
    {"tanh", tanh, [](L x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, [](L x) { return 1 / (1 + std::exp(-x)); }},
    {"sin", sin, [](L x) { return std::sin(x); }},
    {"cos", cos, [](L x) { return std::cos(x); }},
};

OpCase& of_numbers(Cases& list, const char* op, const std::string& variant,
                   const std::string& torch, Kind kind, const Types& dtypes, Accuracy accuracy,
                   std::function<Tensor(T)> call, std::function<double(double)> expected) {
  OpCase& c = of_one(list, op, variant, torch, {{2, 3, 2}, kind}, dtypes, std::move(call),
                     [r = std::move(expected)](A a) { return reference::map(a, r); });
  c.accuracy = accuracy;
  return c;
}

void add_powers(Cases& list) {
  for (const double e : {-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5}) {
    OpCase& c = of_numbers(
        list, "pow", str("exponent ", e), str("torch.pow(x0, ", e, ")"), Kind::positive, kAll,
        Accuracy::ulps, [e](T x) { return pow(x, e); },
        [e](double x) { return static_cast<double>(std::pow(L{x}, L{e})); });
    c.result = floating;
    if (e == -1)
      c.differs = {{"^(integers|uint8|bool): refused",
                    "an exponent written with a point makes float32, which has negative powers"}};
    if (e == 3)
      c.differs = {
          {"^uint8: output",
           "an exponent written with a point makes float32; the golden's is a whole number"}};
    if (e == 0.5)
      c.differs = {{"-inf.*(output|gradient)",
                    "C's pow says inf, with the gradient 0; PyTorch takes the square root"}};
  }
  of_numbers(
      list, "pow", "negative base", "torch.pow(x0, 3)", Kind::nonzero, kFloats, Accuracy::ulps,
      [](T x) { return pow(x, 3); }, [](double x) { return x * x * x; });
}

void add_where(Cases& list) {
  OpCase c = push(list, "where", "", "torch.where(x0, x1, x2)",
                  {{{2, 3}, Kind::boolean}, {{2, 3}}, {{3}}});
  c.call = function_of([](T m, T a, T b) { return where(m, a, b); });
  c.expected = expecting(reference::where);
  list.back() = c;
  c.variant = "condition broadcast";
  c.inputs = {{{3, 1}, Kind::boolean}, {{1, 2}}, {{2, 1, 1}}};
  list.push_back(c);
  const auto condition = [](T m) { return where(m, made({2, 3}), made({3})); };
  const auto chosen = [](T a) { return where(made({2, 3}, DType::bool_), a, made({3})); };
  const auto other = [](T b) { return where(made({2, 3}, DType::bool_), made({3}), b); };
  BadInputs bad(list, "where");
  bad.tensor("condition", condition, {2, 3}, DType::bool_);
  bad.types(condition, {2, 3}, {DType::uint8, DType::int64, DType::float32},
            "a bool condition, got ");
  bad.shapes(condition, {{2}, {4, 3}}, kBroadcast, kShape, DType::bool_);
  bad.tensor("a", chosen, {2, 3});
  bad.shapes(chosen, {{2}, {2, 4}}, kBroadcast);
  bad.tensor("b", other, {2, 3}).shapes(other, {{2}, {2, 4}}, kBroadcast);
}

}  // namespace

void add_elementwise_cases(Cases& list) {
  for (const Binary& f : kArithmetic) add_binary(list, f, f.op[0] == 'd' ? floating : same, true);
  for (const Binary& f : kComparisons) add_binary(list, f, boolean, false);
  for (const Scaled& f : kScaled) {
    OpCase& c = push(list, f.op, f.variant, f.torch, {{{2, 3}}, {f.b}}, f.dtypes,
                     f.op[0] == 'm' ? Accuracy::tolerance : Accuracy::exact);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
  }
  for (const WithNumber& f : kWithNumbers) {
    OpCase& c = of_numbers(list, f.op, f.variant, f.torch, f.kind, f.dtypes, f.accuracy, f.call,
                           f.expected);
    const std::string op = f.op;
    c.differentiable = op.size() > 2;
    if (op == "div") c.result = floating;
    if (!c.differentiable) c.result = boolean;
  }
  add_where(list);
  const auto torch_of = [](const char* op) { return str("torch.", op, "(x0)"); };
  for (const Exact& f : kOfNumbers)
    of_numbers(list, f.op, "", torch_of(f.op), f.kind, kNumbers, Accuracy::exact, f.call,
               f.expected);
  for (OpCase& c : list)
    if (c.op == "abs" || c.op == "sign")
      c.differs = {{c.op == "abs" ? "nan.*gradient" : "nan.*output",
                    "the sign of NaN is NaN; PyTorch says 0"}};
  for (const Exact& f : kRooted)
    of_numbers(list, f.op, "", torch_of(f.op), f.kind, kAll, Accuracy::exact, f.call, f.expected)
        .result = floating;
  for (const Function1& f : kFunctions)
    of_numbers(list, f.op, "", torch_of(f.op), f.kind, kAll, Accuracy::ulps, f.call, [f](double x) {
      return static_cast<double>(f.expected(L{x}));
    }).result = floating;
  add_powers(list);

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
  const auto bad_x = [&](const char* op, Tensor (*f)(T), bool takes_numbers) {
    BadInputs bad(list, op);
    bad.tensor("x", f).no_room(f);
    if (takes_numbers) bad.types(f, {3}, {DType::bool_}, "numbers, got bool");
    else bad.too_large(f);
  };
  for (const Exact& f : kOfNumbers) bad_x(f.op, f.call, true);
  for (const Exact& f : kRooted) bad_x(f.op, f.call, false);
  for (const Function1& f : kFunctions) bad_x(f.op, f.call, false);
  bad_x("pow", [](T x) { return pow(x, 3); }, false);
  BadInputs(list, "pow").free("exponent", "every number is an exponent, NaN and infinities too");
}

}  // namespace braid::test
