#include <braid/core/ops/elementwise.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/elementwise.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;

const std::vector<DType> kNumbers{DType::uint8,    DType::int32,   DType::int64,  DType::float16,
                                  DType::bfloat16, DType::float32, DType::float64};
const std::vector<DType> kSigned{DType::int32,    DType::int64,   DType::float16,
                                 DType::bfloat16, DType::float32, DType::float64};
const std::vector<DType> kAll = all_dtypes();
const std::vector<DType> kFloats = floating_dtypes();

DType floating(DType t) { return is_floating(t) ? t : DType::float32; }
DType boolean(DType) { return DType::bool_; }

/// The common case: one input.
template <class F, class R>
OpCase unary(const char* op, F f, R r, Kind kind, std::vector<DType> dtypes, Accuracy accuracy) {
  OpCase c;
  c.op = op;
  c.inputs = {{{2, 3, 2}, kind}};
  c.call = function_of(f);
  c.expected = expecting([r](const Array& a) {
    return reference::map(a, [r](double x) { return static_cast<double>(r(x)); });
  });
  c.dtypes = std::move(dtypes);
  c.accuracy = accuracy;
  c.torch = str("torch.", op, "(x0)");
  return c;
}

/// With a number beside the tensor: its own name, and PyTorch's words.
OpCase with_number(OpCase c, const char* variant, const char* torch) {
  c.variant = variant;
  c.torch = torch;
  return c;
}

template <class F, class R>
OpCase binary(const char* op, const char* variant, Input a, Input b, F f, R r,
              std::vector<DType> dtypes) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = {std::move(a), std::move(b)};
  c.call = function_of(f);
  c.expected = expecting([r](const Array& x, const Array& y) { return reference::zip(x, y, r); });
  c.dtypes = std::move(dtypes);
  c.torch = str("torch.", op, "(x0, x1)");
  return c;
}

template <class F, class R>
void add_binary(std::vector<OpCase>& list, const char* op, F f, R r, Kind kind_a, Kind kind_b,
                const std::vector<DType>& dtypes, bool differentiable = true,
                std::function<DType(DType)> result = {}) {
  const std::size_t first = list.size();
  list.push_back(binary(op, "", {{2, 3}, kind_a}, {{2, 3}, kind_b}, f, r, dtypes));
  list.push_back(
      binary(op, "broadcast right", {{2, 3, 2}, kind_a}, {{3, 1}, kind_b}, f, r, dtypes));
  list.push_back(binary(op, "broadcast left", {{3}, kind_a}, {{2, 3}, kind_b}, f, r, dtypes));
  list.push_back(binary(op, "broadcast both", {{2, 1, 3}, kind_a}, {{4, 1}, kind_b}, f, r, dtypes));
  list.push_back(binary(op, "rank 0", {{}, kind_a}, {{2, 2}, kind_b}, f, r, dtypes));
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].differentiable = differentiable;
    list[i].kinks = kind_a == Kind::distinct;
    if (result) list[i].result = result;
  }
}

void add_arithmetic(std::vector<OpCase>& list) {
  using T = const Tensor&;
  add_binary(
      list, "add", [](T a, T b) { return add(a, b); }, [](double a, double b) { return a + b; },
      Kind::value, Kind::value, kAll);
  add_binary(
      list, "sub", [](T a, T b) { return a - b; }, [](double a, double b) { return a - b; },
      Kind::value, Kind::value, kNumbers);
  add_binary(
      list, "mul", [](T a, T b) { return a * b; }, [](double a, double b) { return a * b; },
      Kind::value, Kind::value, kAll);
  add_binary(
      list, "div", [](T a, T b) { return a / b; }, [](double a, double b) { return a / b; },
      Kind::value, Kind::nonzero, kAll, true, floating);
  add_binary(
      list, "maximum", [](T a, T b) { return maximum(a, b); }, reference::larger, Kind::distinct,
      Kind::distinct, kAll);
  add_binary(
      list, "minimum", [](T a, T b) { return minimum(a, b); }, reference::smaller, Kind::distinct,
      Kind::distinct, kAll);
  list.push_back(binary(
      "add", "alpha 2", {{2, 3}}, {{3}}, [](T a, T b) { return add(a, b, 2); },
      [](double a, double b) { return a + 2 * b; }, kSigned));
  list.back().torch = "torch.add(x0, x1, alpha=2)";
  list.push_back(binary(
      "sub", "alpha -0.5", {{2, 3}}, {{3}}, [](T a, T b) { return sub(a, b, -0.5); },
      [](double a, double b) { return a + 0.5 * b; }, kFloats));
  list.back().torch = "torch.sub(x0, x1, alpha=-0.5)";
  list.push_back(binary(
      "mul", "one tensor twice", {{2, 3}}, {{1}}, [](T a, T b) { return a * a + b * 0; },
      [](double a, double) { return a * a; }, kSigned));
  list.back().accuracy = Accuracy::tolerance;
  list.back().torch = "x0 * x0 + x1 * 0";
  list.push_back(
      with_number(unary(
                      "add", [](T a) { return add(a, 1.5); }, [](double x) { return x + 1.5; },
                      Kind::value, kFloats, Accuracy::exact),
                  "a number to it", "torch.add(x0, 1.5)"));
  list.push_back(with_number(unary(
                                 "add", [](T a) { return 3.0 + a; }, [](double x) { return x + 3; },
                                 Kind::value, kNumbers, Accuracy::exact),
                             "a whole number", "3 + x0"));
  list.push_back(
      with_number(unary(
                      "sub", [](T a) { return a - 0.5; }, [](double x) { return x - 0.5; },
                      Kind::value, kFloats, Accuracy::exact),
                  "a number from it", "x0 - 0.5"));
  list.push_back(
      with_number(unary(
                      "sub", [](T a) { return 0.5 - a; }, [](double x) { return 0.5 - x; },
                      Kind::value, kFloats, Accuracy::exact),
                  "it from a number", "0.5 - x0"));
  list.push_back(with_number(unary(
                                 "sub", [](T a) { return 2.0 - a; }, [](double x) { return 2 - x; },
                                 Kind::value, kNumbers, Accuracy::exact),
                             "it from a whole number", "2 - x0"));
  list.push_back(
      with_number(unary(
                      "mul", [](T a) { return a * -0.5; }, [](double x) { return x * -0.5; },
                      Kind::value, kFloats, Accuracy::exact),
                  "by a number", "x0 * -0.5"));
  list.push_back(with_number(unary(
                                 "mul", [](T a) { return 3.0 * a; }, [](double x) { return x * 3; },
                                 Kind::value, kNumbers, Accuracy::exact),
                             "by a whole number", "3 * x0"));
  list.push_back(with_number(unary(
                                 "div", [](T a) { return a / 4.0; }, [](double x) { return x / 4; },
                                 Kind::value, kNumbers, Accuracy::exact),
                             "by 4", "x0 / 4"));
  list.push_back(with_number(unary(
                                 "div", [](T a) { return a / 3.0; }, [](double x) { return x / 3; },
                                 Kind::value, kNumbers, Accuracy::ulps),
                             "by 3", "x0 / 3"));  // may be taken as x * (1 / 3)
  list.push_back(with_number(unary(
                                 "div", [](T a) { return 3.0 / a; }, [](double x) { return 3 / x; },
                                 Kind::nonzero, kNumbers, Accuracy::ulps),
                             "a number by it", "3 / x0"));
  for (OpCase& c : list)
    if (c.op == "div") c.result = floating;
  OpCase c;
  c.op = "where";
  c.inputs = {{{2, 3}, Kind::boolean}, {{2, 3}}, {{3}}};
  c.call = function_of([](T m, T a, T b) { return where(m, a, b); });
  c.expected = expecting(reference::where);
  c.dtypes = kAll;
  c.torch = "torch.where(x0, x1, x2)";
  list.push_back(c);
  c.variant = "condition broadcast";
  c.inputs = {{{3, 1}, Kind::boolean}, {{1, 2}}, {{2, 1, 1}}};
  list.push_back(c);
}

void add_comparisons(std::vector<OpCase>& list) {
  using T = const Tensor&;
  // Values on a coarse grid (integers, or the same tensor twice) would make equality likely;
  // comparisons have their own test for that.
  add_binary(
      list, "eq", [](T a, T b) { return eq(a, b); }, [](double a, double b) { return a == b; },
      Kind::value, Kind::value, kAll, false, boolean);
  add_binary(
      list, "ne", [](T a, T b) { return ne(a, b); }, [](double a, double b) { return a != b; },
      Kind::value, Kind::value, kAll, false, boolean);
  add_binary(
      list, "lt", [](T a, T b) { return lt(a, b); }, [](double a, double b) { return a < b; },
      Kind::value, Kind::value, kAll, false, boolean);
  add_binary(
      list, "le", [](T a, T b) { return le(a, b); }, [](double a, double b) { return a <= b; },
      Kind::value, Kind::value, kAll, false, boolean);
  add_binary(
      list, "gt", [](T a, T b) { return gt(a, b); }, [](double a, double b) { return a > b; },
      Kind::value, Kind::value, kAll, false, boolean);
  add_binary(
      list, "ge", [](T a, T b) { return ge(a, b); }, [](double a, double b) { return a >= b; },
      Kind::value, Kind::value, kAll, false, boolean);
  const std::size_t first = list.size();
  list.push_back(unary(
      "eq", [](T a) { return eq(a, 1); }, [](double x) { return x == 1; }, Kind::value, kAll,
      Accuracy::exact));
  list.back().torch = "torch.eq(x0, 1)";
  list.push_back(unary(
      "gt", [](T a) { return gt(a, 0); }, [](double x) { return x > 0; }, Kind::value, kAll,
      Accuracy::exact));
  list.back().torch = "torch.gt(x0, 0)";
  list.push_back(unary(
      "lt", [](T a) { return lt(a, 1); }, [](double x) { return x < 1; }, Kind::value, kAll,
      Accuracy::exact));
  list.back().torch = "torch.lt(x0, 1)";
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].variant = "with a number";
    list[i].differentiable = false;
    list[i].result = boolean;
  }
}

void add_unary(std::vector<OpCase>& list) {
  using T = const Tensor&;
  using L = long double;
  list.push_back(unary(
      "neg", [](T x) { return -x; }, [](double x) { return -x; }, Kind::value, kNumbers,
      Accuracy::exact));
  list.push_back(unary(
      "abs", [](T x) { return abs(x); }, [](double x) { return std::fabs(x); }, Kind::nonzero,
      kNumbers, Accuracy::exact));
  list.back().differs = {{"nan.*gradient", "the sign of NaN is NaN; PyTorch says 0"}};
  list.push_back(unary(
      "sign", [](T x) { return sign(x); }, reference::sign, Kind::nonzero, kNumbers,
      Accuracy::exact));
  list.back().differs = {{"nan.*output", "the sign of NaN is NaN; PyTorch says 0"}};
  list.push_back(unary(
      "relu", [](T x) { return relu(x); }, [](double x) { return std::max(x, 0.0); }, Kind::nonzero,
      kNumbers, Accuracy::exact));
  list.push_back(unary(
      "square", [](T x) { return square(x); }, [](double x) { return x * x; }, Kind::value,
      kNumbers, Accuracy::exact));
  const std::size_t first = list.size();
  list.push_back(unary(
      "sqrt", [](T x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, Kind::positive,
      kAll, Accuracy::exact));
  list.push_back(unary(
      "reciprocal", [](T x) { return reciprocal(x); }, [](double x) { return 1 / x; },
      Kind::nonzero, kAll, Accuracy::exact));
  list.push_back(unary(
      "rsqrt", [](T x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(L{x}); },
      Kind::positive, kAll, Accuracy::ulps));
  list.push_back(unary(
      "exp", [](T x) { return exp(x); }, [](double x) { return std::exp(L{x}); }, Kind::value, kAll,
      Accuracy::ulps));
  list.push_back(unary(
      "log", [](T x) { return log(x); }, [](double x) { return std::log(L{x}); }, Kind::positive,
      kAll, Accuracy::ulps));
  list.push_back(unary(
      "tanh", [](T x) { return tanh(x); }, [](double x) { return std::tanh(L{x}); }, Kind::value,
      kAll, Accuracy::ulps));
  list.push_back(unary(
      "sigmoid", [](T x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-L{x})); },
      Kind::value, kAll, Accuracy::ulps));
  list.push_back(unary(
      "sin", [](T x) { return sin(x); }, [](double x) { return std::sin(L{x}); }, Kind::value, kAll,
      Accuracy::ulps));
  list.push_back(unary(
      "cos", [](T x) { return cos(x); }, [](double x) { return std::cos(L{x}); }, Kind::value, kAll,
      Accuracy::ulps));
  for (const double e : {-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5}) {
    list.push_back(unary(
        "pow", [e](T x) { return pow(x, e); }, [e](double x) { return std::pow(L{x}, L{e}); },
        Kind::positive, kAll, Accuracy::ulps));
    list.back().variant = str("exponent ", e);
    list.back().torch = str("torch.pow(x0, ", e, ")");
    if (e == -1)
      list.back().differs = {{"^(integers|uint8|bool): refused",
                              "whole numbers become float32 here, and have negative powers"}};
    if (e == 3)
      list.back().differs = {
          {"^uint8: output", "whole numbers become float32 here; PyTorch's uint8 wraps around"}};
    if (e == 0.5)
      list.back().differs = {
          {"-inf.*(output|gradient)",
           "C's pow says inf, with the gradient 0; PyTorch takes the square root"}};
  }
  list.push_back(unary(
      "pow", [](T x) { return pow(x, 3); }, [](double x) { return x * x * x; }, Kind::nonzero,
      kFloats, Accuracy::ulps));
  list.back().variant = "negative base";
  list.back().torch = "torch.pow(x0, 3)";
  for (std::size_t i = first; i < list.size(); ++i) list[i].result = floating;
}

}  // namespace

void add_elementwise_cases(std::vector<OpCase>& list) {
  add_arithmetic(list);
  add_comparisons(list);
  add_unary(list);
  on_device::add_elementwise_errors(list);
}

}  // namespace braid::test
