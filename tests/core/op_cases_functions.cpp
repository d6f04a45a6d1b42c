// Functions of one tensor: the rarer elementary ones, rounding, questions about a number, clamp.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/activations.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using L = long double;

struct Function1 {
  const char* op;
  Tensor (*call)(const Tensor&);
  L (*expected)(L);
  Kind kind;
};

const Function1 kFunctions[] = {
    {"exp2", exp2, [](L x) { return std::exp2(x); }, Kind::value},
    {"expm1", expm1, [](L x) { return std::expm1(x); }, Kind::value},
    {"log1p", log1p, [](L x) { return std::log1p(x); }, Kind::unit},
    {"log2", log2, [](L x) { return std::log2(x); }, Kind::positive},
    {"log10", log10, [](L x) { return std::log10(x); }, Kind::positive},
    {"tan", tan, [](L x) { return std::tan(x); }, Kind::unit},
    {"asin", asin, [](L x) { return std::asin(x); }, Kind::unit},
    {"acos", acos, [](L x) { return std::acos(x); }, Kind::unit},
    {"atan", atan, [](L x) { return std::atan(x); }, Kind::value},
    {"sinh", sinh, [](L x) { return std::sinh(x); }, Kind::value},
    {"cosh", cosh, [](L x) { return std::cosh(x); }, Kind::value},
    {"asinh", asinh, [](L x) { return std::asinh(x); }, Kind::value},
    {"acosh", acosh, [](L x) { return std::acosh(x); }, Kind::above_one},
    {"atanh", atanh, [](L x) { return std::atanh(x); }, Kind::unit},
    {"erf", erf, [](L x) { return std::erf(x); }, Kind::value},
    {"erfc", erfc, [](L x) { return std::erfc(x); }, Kind::value},
};
const Function1 kSteps[] = {
    {"floor", floor, [](L x) { return std::floor(x); }, Kind::value},
    {"ceil", ceil, [](L x) { return std::ceil(x); }, Kind::value},
    {"round", round, [](L x) { return std::nearbyint(x); }, Kind::value},
    {"trunc", trunc, [](L x) { return std::trunc(x); }, Kind::value},
};
const Function1 kQuestions[] = {
    {"isnan", isnan, [](L x) { return std::isnan(x) ? 1.0L : 0.0L; }, Kind::value},
    {"isinf", isinf, [](L x) { return std::isinf(x) ? 1.0L : 0.0L; }, Kind::value},
    {"isfinite", isfinite, [](L x) { return std::isfinite(x) ? 1.0L : 0.0L; }, Kind::value},
    {"logical_not", logical_not, [](L x) { return x == 0 ? 1.0L : 0.0L; }, Kind::value},
};

std::string torch_of(const char* op) { return str("torch.", op, "(x0)"); }
const auto kSame = [](DType t) { return t; };

void add_functions(std::vector<OpCase>& list) {
  for (const Function1& f : kFunctions) {
    add_unary_cases(
        list, f.op, "", torch_of(f.op), f.call, [f](double x) { return f.expected(L{x}); }, f.kind,
        all_dtypes(), Accuracy::ulps);
    bad_tensor(list, f.op, "x", f.call).too_large(f.call);
  }
}

void add_steps(std::vector<OpCase>& list) {
  for (const Function1& f : kSteps) {
    add_unary_cases(
        list, f.op, "", torch_of(f.op), f.call, [f](double x) { return f.expected(L{x}); }, f.kind,
        numbers_of_any_type(), Accuracy::exact, kSame);
    bad_tensor(list, f.op, "x", f.call)
        .types(f.call, {2}, {DType::bool_}, "expected numbers, got bool");
  }
  add_unary_cases(
      list, "frac", "", "torch.frac(x0)", frac, [](double x) { return x - std::trunc(x); },
      Kind::value, floating_dtypes(), Accuracy::exact, kSame);
  bad_tensor(list, "frac", "x", frac)
      .types(frac, {2}, {DType::int32, DType::uint8, DType::bool_},
             "expected a floating point tensor, got ");
}

void add_questions(std::vector<OpCase>& list) {
  for (const Function1& f : kQuestions) {
    const std::size_t first = list.size();
    add_unary_cases(
        list, f.op, "", torch_of(f.op), f.call, [f](double x) { return f.expected(L{x}); }, f.kind,
        all_dtypes(), Accuracy::exact, boolean);
    for (std::size_t i = first; i < list.size(); ++i) list[i].differentiable = false;
    bad_tensor(list, f.op, "x", f.call);
  }
}

void add_clamp(std::vector<OpCase>& list) {
  using T = const Tensor&;
  const auto add = [&](const char* variant, const char* torch, auto f, auto r,
                       const std::vector<DType>& dtypes) {
    add_unary_cases(list, "clamp", variant, torch, f, r, Kind::value, dtypes, Accuracy::exact,
                    kSame);
    list.back().kinks = true;
  };
  add(
      "", "torch.clamp(x0, -0.5, 0.7)", [](T x) { return clamp(x, -0.5, 0.7); },
      // The bounds are rounded to the type first, as x is.
      [](double x) { return reference::cut_off(x, -0.5, 0.7); }, {DType::float64});
  const auto between = [](T x) { return clamp(x, 0.0, 0.7); };
  bad_tensor(list, "clamp", "x", between)
      .types(between, {2}, {DType::bool_}, "expected numbers, got bool");
  const auto twos = [] { return on_device::full({2, 3}, 2); };
  const auto below = [twos](T min) { return clamp(twos(), min, Tensor()); };
  const auto above = [twos](T max) { return clamp(twos(), Tensor(), max); };
  const std::string neither = "clamp: expected min, max or both, got neither";
  BadInputs(list, "clamp")
      .of("min")
      .refused("ArgumentError", neither,
               [twos] { (void)clamp(twos(), std::nullopt, std::nullopt); })
      .shapes(below, {{2}, {4, 1, 2}}, "expected .*got")
      .of("max")
      .refused("ArgumentError", neither, [above] { (void)above(Tensor()); })
      .shapes(above, {{2}, {3, 2}}, "expected .*got");
  add(
      "halves", "torch.clamp(x0, -0.5, 0.75)", [](T x) { return clamp(x, -0.5, 0.75); },
      [](double x) { return reference::cut_off(x, -0.5, 0.75); }, floating_dtypes());
  add(
      "whole bounds", "torch.clamp(x0, 1, 5)", [](T x) { return clamp(x, 1, 5); },
      [](double x) { return reference::cut_off(x, 1, 5); }, numbers_of_any_type());
  add(
      "from below", "torch.clamp(x0, min=0)", [](T x) { return clamp(x, 0); },
      [](double x) { return std::max(x, 0.0); }, numbers_of_any_type());
  add(
      "from above", "torch.clamp(x0, max=1)", [](T x) { return clamp(x, std::nullopt, 1); },
      [](double x) { return std::min(x, 1.0); }, numbers_of_any_type());
  add(
      "crossed", "torch.clamp(x0, 1, -1)", [](T x) { return clamp(x, 1, -1); },
      [](double) { return -1.0; }, {DType::int32, DType::int64, DType::float32, DType::float64});
  OpCase c;
  c.op = "clamp";
  c.variant = "tensors";
  c.torch = "torch.clamp(x0, x1, x2)";
  c.inputs = {{{2, 3, 2}, Kind::distinct}, {{3, 1}, Kind::distinct}, {{2}, Kind::above_one}};
  c.call = function_of([](T x, T low, T high) { return clamp(x, low, high); });
  c.expected = expecting([](const std::vector<Array>& a) {
    return std::vector<Array>{
        reference::zip(reference::zip(a[0], a[1], reference::larger), a[2], reference::smaller)};
  });
  c.dtypes = numbers_of_any_type();
  c.kinks = true;
  list.push_back(c);
  c.variant = "a tensor below";
  c.torch = "torch.clamp(x0, min=x1)";
  c.inputs.pop_back();
  c.call = function_of([](T x, T low) { return clamp(x, low, Tensor()); });
  c.expected = expecting(
      [](const Array& x, const Array& low) { return reference::zip(x, low, reference::larger); });
  list.push_back(c);
}

}  // namespace

void add_function_cases(std::vector<OpCase>& list) {
  add_functions(list);
  add_steps(list);
  add_questions(list);
  add_clamp(list);
}

}  // namespace braid::test
