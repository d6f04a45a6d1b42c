// Cases of functions of one tensor: rarer elementary functions, rounding, predicates, clamp.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/activations.hpp"

namespace braid::test {
namespace {

const Function1 kFunctions[] = {
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

struct Clamp {
  const char *variant, *torch;
  Tensor (*call)(T);
  double (*expected)(double);
  const Types& dtypes;
};
const Types kFloat64{DType::float64},
    kNoHalves{DType::int32, DType::int64, DType::float32, DType::float64};
const Clamp kClamps[] = {
    // The op rounds the bounds to x's dtype first.
    {"", "torch.clamp(x0, -0.5, 0.7)", [](T x) { return clamp(x, -0.5, 0.7); },
     [](double x) { return reference::cut_off(x, -0.5, 0.7); }, kFloat64},
    {"halves", "torch.clamp(x0, -0.5, 0.75)", [](T x) { return clamp(x, -0.5, 0.75); },
     [](double x) { return reference::cut_off(x, -0.5, 0.75); }, kFloats},
    {"whole bounds", "torch.clamp(x0, 1, 5)", [](T x) { return clamp(x, 1, 5); },
     [](double x) { return reference::cut_off(x, 1, 5); }, kNumbers},
    {"from below", "torch.clamp(x0, min=0)", [](T x) { return clamp(x, 0); },
     [](double x) { return std::max(x, 0.0); }, kNumbers},
    {"from above", "torch.clamp(x0, max=1)", [](T x) { return clamp(x, std::nullopt, 1); },
     [](double x) { return std::min(x, 1.0); }, kNumbers},
    {"crossed", "torch.clamp(x0, 1, -1)", [](T x) { return clamp(x, 1, -1); },
     [](double) { return -1.0; }, kNoHalves},
};

void add_clamp(Cases& list) {
  for (const Clamp& f : kClamps) {
    add_unary(list, Unary{"clamp", f.variant, f.torch, f.call, f.expected}, f.dtypes,
              Accuracy::exact, same);
    list.back().kinks = true;
  }
  OpCase c = push(list, "clamp", "tensors", "torch.clamp(x0, x1, x2)",
                  {{{2, 3, 2}, Kind::distinct}, {{3, 1}, Kind::distinct}, {{2}, Kind::above_one}},
                  kNumbers);
  c.call = function_of([](T x, T low, T high) { return clamp(x, low, high); });
  c.expected = expecting([](A x, A low, A high) {
    return reference::zip(reference::zip(x, low, reference::larger), high, reference::smaller);
  });
  c.kinks = true;
  list.back() = c;
  c.variant = "a tensor below";
  c.torch = "torch.clamp(x0, min=x1)";
  c.inputs.pop_back();
  c.call = function_of([](T x, T low) { return clamp(x, low, Tensor()); });
  c.expected = zipping(reference::larger);
  list.push_back(c);

  const auto between = [](T x) { return clamp(x, 0.0, 0.7); };
  bad_tensor(list, "clamp", between).types(between, {2}, {DType::bool_}, "numbers, got bool");
  const auto twos = [] { return on_device::full({2, 3}, 2.0); };
  const auto below = [twos](T min) { return clamp(twos(), min, Tensor()); };
  const auto above = [twos](T max) { return clamp(twos(), Tensor(), max); };
  const char* const neither = "min, max or both, got neither";
  BadInputs bad(list, "clamp");
  bad.of("min").shapes(below, {{2}, {4, 1, 2}}, ".*got");
  bad.is(kArgument, neither, [twos] { return clamp(twos(), std::nullopt, std::nullopt); });
  bad.of("max").shapes(above, {{2}, {3, 2}}, ".*got");
  bad.is(kArgument, neither, [above] { return above(Tensor()); });
}

}  // namespace

void add_function_cases(Cases& list) {
  for (const Function1& f : kFunctions) {
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
  add_clamp(list);
}

}  // namespace braid::test
