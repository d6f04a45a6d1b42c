// Cases of elements chosen by a mask, and of elements limited by bounds.
#include <algorithm>

#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/activation.hpp"

namespace braid::test {
namespace {

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

void add_where_cases(Cases& list) {
  add_where(list);
  add_masks(list);
  add_clamp(list);
  parameters(list, "clamp(x min max) masked_fill(x mask value) where(condition a b)");
}

}  // namespace braid::test
