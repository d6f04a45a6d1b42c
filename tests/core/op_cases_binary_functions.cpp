// Functions of two and three tensors: powers, remainders, logic, masks, weighted sums.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/functions.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;
using L = long double;

/// What a case of two tensors is made of.
struct Of2 {
  const char* op;
  std::string torch;
  std::function<Tensor(T, T)> call;
  std::function<double(double, double)> expected;
  Kind kind_a = Kind::value, kind_b = Kind::value;
  Accuracy accuracy = Accuracy::exact;
  bool differentiable = true;
  std::function<DType(DType)> result = [](DType t) { return t; };
};

/// Equal shapes, broadcasting on both sides, rank 0, one element, empty; and what any op of two
/// tensors refuses.
void add_two(std::vector<OpCase>& list, const Of2& of, const std::vector<DType>& dtypes) {
  const std::size_t first = list.size();
  const struct {
    const char* variant;
    Sizes a, b;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"broadcast", {2, 1, 3}, {4, 1}},
                {"rank 0", {}, {2, 2}},
                {"one element", {1}, {1}},
                {"empty", {0, 3}, {3}}};
  for (const auto& s : shapes) {
    OpCase c;
    c.op = of.op;
    c.variant = s.variant;
    c.inputs = {{s.a, of.kind_a}, {s.b, of.kind_b}};
    c.call = function_of([f = of.call](T a, T b) { return f(a, b); });
    c.expected = expecting(
        [f = of.expected](const Array& a, const Array& b) { return reference::zip(a, b, f); });
    c.dtypes = dtypes;
    c.accuracy = of.accuracy;
    c.differentiable = of.differentiable;
    c.result = of.result;
    c.torch = of.torch;
    list.push_back(c);
  }
  const auto call = of.call;
  const std::string does_not_broadcast = str(of.op, ": expected .*got");
  const std::string undefined = "tensor: expected a defined tensor, got an undefined one";
  using on_device::ones;
  list[first].errors = {
      {"a", [call] { (void)call(Tensor(), ones({2})); }, "ArgumentError", undefined},
      {"a", [call] { (void)call(ones({2, 3}), ones({3, 2})); }, "ShapeError", does_not_broadcast},
      {"a", [call] { (void)call(ones({4}), ones({2, 3})); }, "ShapeError", does_not_broadcast},
      {"b", [call] { (void)call(ones({2}), Tensor()); }, "ArgumentError", undefined},
      {"b", [call] { (void)call(ones({0}), ones({2})); }, "ShapeError", does_not_broadcast},
      {"b", [call] { (void)call(ones({3, 2}), ones({2, 2, 2})); }, "ShapeError",
       does_not_broadcast},
  };
}

void add_errors(std::vector<OpCase>& list, const char* op, std::vector<BadInput> errors) {
  for (OpCase& c : list)
    if (c.op == op && !c.errors.empty())
      return void(c.errors.insert(c.errors.end(), errors.begin(), errors.end()));
}

void add_functions(std::vector<OpCase>& list) {
  const std::vector<DType> floats = floating_dtypes();
  const std::vector<DType> integers{DType::int32, DType::int64};
  add_two(list,
          {"pow", "torch.pow(x0, x1)", [](T a, T b) { return pow(a, b); },
           [](double a, double b) { return static_cast<double>(std::pow(L{a}, L{b})); },
           Kind::positive, Kind::value, Accuracy::ulps},
          floats);
  add_unary_cases(
      list, "pow", "integers", "torch.pow(x0, x0 // 3)",
      [](T a) { return pow(a, floor_divide(a, 3)); },
      [](double a) { return reference::whole_power(a, reference::floor_divide(a, 3)); },
      Kind::nonzero, integers, Accuracy::exact, [](DType t) { return t; });
  add_unary_cases(
      list, "pow", "of 1.5", "torch.pow(1.5, x0)", [](T a) { return pow(1.5, a); },
      [](double a) { return std::pow(L{1.5}, L{a}); }, Kind::value, numbers_of_any_type(),
      Accuracy::ulps);
  add_two(list,
          {"atan2", "torch.atan2(x0, x1)", [](T a, T b) { return atan2(a, b); },
           [](double a, double b) { return static_cast<double>(std::atan2(L{a}, L{b})); },
           Kind::nonzero, Kind::nonzero, Accuracy::ulps, true, floating},
          all_dtypes());
  add_two(list,
          {"fmod", "torch.fmod(x0, x1)", [](T a, T b) { return fmod(a, b); },
           [](double a, double b) { return std::fmod(a, b); }, Kind::value, Kind::nonzero},
          numbers_of_any_type());
  add_two(list,
          {"remainder", "torch.remainder(x0, x1)", [](T a, T b) { return remainder(a, b); },
           reference::remainder, Kind::value, Kind::nonzero},
          numbers_of_any_type());
  add_two(list,
          {"floor_divide", "torch.div(x0, x1, rounding_mode='floor')",
           [](T a, T b) { return floor_divide(a, b); }, reference::floor_divide, Kind::value,
           Kind::nonzero},
          numbers_of_any_type());
  const auto number = [&](const char* op, const char* torch, auto f, auto r) {
    add_unary_cases(list, op, "with a number", torch, f, r, Kind::value, numbers_of_any_type(),
                    Accuracy::exact, [](DType t) { return t; });
  };
  number(
      "fmod", "torch.fmod(x0, 2)", [](T a) { return fmod(a, 2); },
      [](double a) { return std::fmod(a, 2.0); });
  number(
      "remainder", "torch.remainder(x0, 2)", [](T a) { return remainder(a, 2); },
      [](double a) { return reference::remainder(a, 2); });
  number(
      "floor_divide", "torch.div(x0, 2, rounding_mode='floor')",
      [](T a) { return floor_divide(a, 2); },
      [](double a) { return reference::floor_divide(a, 2); });
  for (const char* op : {"pow", "fmod", "remainder", "floor_divide"}) {
    const std::string name = op;
    const auto call = [name](T a, T b) {
      return name == "pow"         ? pow(a, b)
             : name == "fmod"      ? fmod(a, b)
             : name == "remainder" ? remainder(a, b)
                                   : floor_divide(a, b);
    };
    add_errors(list, op,
               {{"a",
                 [call] {
                   (void)call(on_device::ones({2}, {.dtype = DType::bool_}),
                              on_device::ones({2}, {.dtype = DType::bool_}));
                 },
                 "DTypeError", name + ": expected numbers, got bool"}});
  }
  add_two(
      list,
      {"xlogy", "torch.xlogy(x0, x1)", [](T a, T b) { return xlogy(a, b); },
       [](double a, double b) { return a == 0 ? 0 : static_cast<double>(L{a} * std::log(L{b})); },
       Kind::value, Kind::positive, Accuracy::tolerance, true, floating},
      all_dtypes());
}

void add_logic(std::vector<OpCase>& list) {
  const std::vector<DType> all = all_dtypes();
  const auto add = [&](const char* op, auto f, auto r) {
    add_two(list,
            {op, str("torch.", op, "(x0, x1)"), f, r, Kind::value, Kind::value, Accuracy::exact,
             false, boolean},
            all);
  };
  add("logical_and", logical_and, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
  add("logical_or", logical_or, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
  add("logical_xor", logical_xor,
      [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; });
  const auto with_number = [&](const char* op, const char* torch, auto f, auto r) {
    add_unary_cases(list, op, "with a number", torch, f, r, Kind::value, all, Accuracy::exact,
                    boolean);
    list.back().differentiable = false;
  };
  with_number(
      "ne", "torch.ne(x0, 1)", [](T a) { return ne(a, 1); }, [](double a) { return a != 1; });
  with_number(
      "le", "torch.le(x0, 1)", [](T a) { return le(a, 1); }, [](double a) { return a <= 1; });
  with_number(
      "ge", "torch.ge(x0, 1)", [](T a) { return ge(a, 1); }, [](double a) { return a >= 1; });
  const auto number_first = [&](const char* op, const char* torch, auto f, auto r) {
    with_number(op, torch, f, r);
    list.back().variant = "number first";
  };
  number_first("eq", "1 == x0", [](T a) { return eq(1, a); }, [](double a) { return 1 == a; });
  number_first("ne", "1 != x0", [](T a) { return ne(1, a); }, [](double a) { return 1 != a; });
  number_first("lt", "1 < x0", [](T a) { return lt(1, a); }, [](double a) { return 1 < a; });
  number_first("le", "1 <= x0", [](T a) { return le(1, a); }, [](double a) { return 1 <= a; });
  number_first("gt", "1 > x0", [](T a) { return gt(1, a); }, [](double a) { return 1 > a; });
  number_first("ge", "1 >= x0", [](T a) { return ge(1, a); }, [](double a) { return 1 >= a; });
}

void add_masks(std::vector<OpCase>& list) {
  OpCase c;
  c.op = "where";
  c.dtypes = numbers_of_any_type();
  c.inputs = {{{2, 1}, Kind::boolean}, {{2, 3}}};
  c.variant = "number where false";
  c.torch = "torch.where(x0, x1, 2)";
  c.call = function_of([](T m, T a) { return where(m, a, 2); });
  c.expected = expecting([](const Array& m, const Array& a) {
    return reference::zip(m, a, [](double p, double x) { return p != 0 ? x : 2; });
  });
  list.push_back(c);
  c.variant = "number where true";
  c.torch = "torch.where(x0, 2, x1)";
  c.call = function_of([](T m, T a) { return where(m, 2, a); });
  c.expected = expecting([](const Array& m, const Array& a) {
    return reference::zip(m, a, [](double p, double x) { return p != 0 ? 2 : x; });
  });
  list.push_back(c);

  c.op = "masked_fill";
  c.variant = "";
  c.dtypes = all_dtypes();
  c.torch = "x0.masked_fill(x1, 1)";
  c.inputs = {{{2, 3}}, {{2, 3}, Kind::boolean}};
  c.call = function_of([](T x, T m) { return masked_fill(x, m, 1); });
  c.expected = expecting([](const Array& x, const Array& m) {
    return reference::zip(x, m, [](double v, double p) { return p != 0 ? 1 : v; });
  });
  using on_device::ones;
  const auto mask = [] { return on_device::ones({2}, {.dtype = DType::bool_}); };
  const auto whole = [] { return on_device::ones({2}, {.dtype = DType::int32}); };
  const std::string undefined = "tensor: expected a defined tensor, got an undefined one";
  c.errors = {
      {"x", [=] { (void)masked_fill(Tensor(), mask(), 1); }, "ArgumentError", undefined},
      {"x", [=] { (void)masked_fill(ones({3}), mask(), 1); }, "ShapeError",
       "masked_fill: expected .*got"},
      {"x", [=] { (void)masked_fill(ones({2, 3}), mask(), 1); }, "ShapeError",
       "masked_fill: expected .*got"},
      {"mask", [=] { (void)masked_fill(ones({2}), ones({2}), 1); }, "DTypeError",
       "masked_fill: expected a bool mask, got float32"},
      {"mask", [=] { (void)masked_fill(ones({2}), whole(), 1); }, "DTypeError",
       "masked_fill: expected a bool mask, got int32"},
      {"mask", [=] { (void)masked_fill(ones({2}), Tensor(), 1); }, "ArgumentError", undefined},
      {"value", [=] { (void)masked_fill(ones({2}), mask(), ones({1})); }, "ShapeError",
       "masked_fill: expected a value of rank 0, got \\[1\\]"},
      {"value", [=] { (void)masked_fill(whole(), mask(), ones({})); }, "DTypeError",
       "masked_fill: expected a value that int32 can hold, got float32"},
      {"value", [=] { (void)masked_fill(whole(), mask(), 3e9); }, "DTypeError",
       "masked_fill: expected .*3e\\+09"},
      {"value", [=] { (void)masked_fill(ones({2}), mask(), Tensor()); }, "ArgumentError",
       undefined},
  };
  list.push_back(c);
  c.errors.clear();
  c.variant = "both broadcast";
  c.inputs = {{{2, 1}}, {{2, 1, 3}, Kind::boolean}};
  list.push_back(c);
  c.variant = "empty";
  c.inputs = {{{0, 3}}, {{3}, Kind::boolean}};
  list.push_back(c);
  c.variant = "one element";
  c.inputs = {{{1}}, {{1}, Kind::boolean}};
  list.push_back(c);
  c.variant = "a tensor";
  c.torch = "x0.masked_fill(x1, x2)";
  c.inputs = {{{2, 3}}, {{2, 1}, Kind::boolean}, {{}}};
  c.call = function_of([](T x, T m, T v) { return masked_fill(x, m, v); });
  c.expected = expecting([](const std::vector<Array>& a) {
    return std::vector<Array>{
        reference::zip(a[0], a[1], [v = a[2][0]](double x, double p) { return p != 0 ? v : x; })};
  });
  list.push_back(c);
}

void add_sums(std::vector<OpCase>& list) {
  const auto three = [&](const char* op, const std::vector<const char*>& names, const char* torch,
                         auto f, auto r, Kind last) {
    OpCase c;
    c.op = op;
    c.torch = torch;
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    c.call = function_of([f](T a, T b, T w) { return f(a, b, w); });
    c.expected = expecting([r](const std::vector<Array>& a) {
      const reference::Sizes shape =
          reference::broadcast(a[0].shape, reference::broadcast(a[1].shape, a[2].shape));
      return std::vector<Array>{reference::generate(shape, [&](const reference::Sizes& i) {
        return r(reference::broadcast_value(a[0], i), reference::broadcast_value(a[1], i),
                 reference::broadcast_value(a[2], i));
      })};
    });
    c.inputs = {{{2, 3}}, {{2, 3}}, {{2, 3}, last}};
    using on_device::ones;
    const std::string undefined = "tensor: expected a defined tensor, got an undefined one",
                      shapes = str(op, ": expected .*got");
    for (std::size_t k = 0; k < 3; ++k) {
      const auto bad = [f, k](const Tensor& t) {
        const Tensor good = on_device::ones({2, 3});
        (void)f(k == 0 ? t : good, k == 1 ? t : good, k == 2 ? t : good);
      };
      c.errors.push_back({names[k], [bad] { bad(Tensor()); }, "ArgumentError", undefined});
      c.errors.push_back({names[k], [bad] { bad(ones({2})); }, "ShapeError", shapes});
      c.errors.push_back({names[k], [bad] { bad(ones({3, 3})); }, "ShapeError", shapes});
    }
    list.push_back(c);
    c.errors.clear();
    c.variant = "broadcast";
    c.inputs = {{{2, 1, 3}}, {{4, 1}}, {{3}, last}};
    list.push_back(c);
    c.variant = "empty";
    c.inputs = {{{2, 0}}, {{1}}, {{}, last}};
    list.push_back(c);
    if (last != Kind::nonzero) return;
    c.variant = "whole numbers";
    c.inputs = {{{2, 3}}, {{3}}, {{2, 1}, last}};
    c.dtypes = {DType::bool_, DType::uint8, DType::int32, DType::int64};
    c.result = floating;
    c.differs = {{"refused", "whole numbers become float32 here"}};
    list.push_back(c);
  };
  three(
      "lerp", {"a", "b", "weight"}, "torch.lerp(x0, x1, x2)",
      [](T a, T b, T w) { return lerp(a, b, w); },
      [](double a, double b, double w) { return a + w * (b - a); }, Kind::value);
  three(
      "addcmul", {"x", "a", "b"}, "torch.addcmul(x0, x1, x2, value=0.5)",
      [](T x, T a, T b) { return addcmul(x, a, b, 0.5); },
      [](double x, double a, double b) { return x + 0.5 * a * b; }, Kind::value);
  three(
      "addcdiv", {"x", "a", "b"}, "torch.addcdiv(x0, x1, x2, value=0.5)",
      [](T x, T a, T b) { return addcdiv(x, a, b, 0.5); },
      [](double x, double a, double b) { return x + 0.5 * a / b; }, Kind::nonzero);
  for (const char* op : {"addcmul", "addcdiv"})
    BadInputs(list, op).free("value", "every number is a factor, NaN and infinities too");
  for (const double w : {0.25, 0.75}) {
    OpCase c;
    c.op = "lerp";
    c.variant = str("weight ", w);
    c.torch = str("torch.lerp(x0, x1, ", w, ")");
    c.inputs = {{{2, 3}}, {{3}}};
    c.call = function_of([w](T a, T b) { return lerp(a, b, w); });
    c.expected = expecting([w](const Array& a, const Array& b) {
      return reference::zip(a, b, [w](double x, double y) { return x + w * (y - x); });
    });
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    list.push_back(c);
  }
}

}  // namespace

void add_binary_function_cases(std::vector<OpCase>& list) {
  add_functions(list);
  add_logic(list);
  add_masks(list);
  add_sums(list);
}

}  // namespace braid::test
