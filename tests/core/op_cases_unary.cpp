// Cases of functions of one tensor.
#include <algorithm>

#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

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

const Function1 kRare[] = {
    {"exp2", exp2, [](L x) { return std::exp2(x); }},
    {"expm1", expm1, [](L x) { return std::expm1(x); }},
    {"log1p", log1p, [](L x) { return std::log1p(x); }, Kind::unit},
    {"log2", log2, [](L x) { return std::log2(x); }, Kind::positive},
    {"log10", log10, [](L x) { return std::log10(x); }, Kind::positive},
    {"tan", tan, [](L x) { return std::tan(x); }, Kind::unit},
    {"asin", asin, [](L x) { return std::asin(x); }, Kind::unit},
    {"acos", acos, [](L x) { return std::acos(x); }, Kind::unit},
    {"atan", atan, [](L x) { return std::atan(x); }},
    {"sinh", sinh, [](L x) { return std::sinh(x); }},
    {"cosh", cosh, [](L x) { return std::cosh(x); }},
    {"asinh", asinh, [](L x) { return std::asinh(x); }},
    {"acosh", acosh, [](L x) { return std::acosh(x); }, Kind::above_one},
    {"atanh", atanh, [](L x) { return std::atanh(x); }, Kind::unit},
    {"erf", erf, [](L x) { return std::erf(x); }},
    {"erfc", erfc, [](L x) { return std::erfc(x); }},
};
const Function1 kSteps[] = {
    {"floor", floor, [](L x) { return std::floor(x); }},
    {"ceil", ceil, [](L x) { return std::ceil(x); }},
    {"round", round, [](L x) { return std::nearbyint(x); }},
    {"trunc", trunc, [](L x) { return std::trunc(x); }},
    {"frac", frac, [](L x) { return x - std::trunc(x); }},
};
const Function1 kQuestions[] = {
    {"isnan", isnan, [](L x) { return std::isnan(x) ? 1.0L : 0.0L; }},
    {"isinf", isinf, [](L x) { return std::isinf(x) ? 1.0L : 0.0L; }},
    {"isfinite", isfinite, [](L x) { return std::isfinite(x) ? 1.0L : 0.0L; }},
    {"logical_not", logical_not, [](L x) { return x == 0 ? 1.0L : 0.0L; }},
};

}  // namespace

void add_unary_cases(Cases& list) {
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
  for (const Function1& f : kRare) {
    add_unary(list, f, kAll, Accuracy::ulps);
    bad_tensor(list, f.op, f.call).too_large(f.call);
  }
  for (const Function1& f : kSteps) {
    const bool of_numbers = f.call != &frac;
    add_unary(list, f, of_numbers ? kNumbers : kFloats, Accuracy::exact, same);
    BadInputs bad = bad_tensor(list, f.op, f.call);
    if (of_numbers) bad.types(f.call, {2}, {DType::bool_}, "numbers, got bool");
    else bad.types(f.call, {2}, {DType::int32, DType::uint8, DType::bool_});
  }
  for (const Function1& f : kQuestions) {
    add_unary(list, f, kAll, Accuracy::exact, boolean, false);
    bad_tensor(list, f.op, f.call);
  }
  parameters(list, "pow(a b) pow(x exponent)");
}

}  // namespace braid::test
