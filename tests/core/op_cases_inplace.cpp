// In-place ops, on a copy: so that they have values, gradients and bad inputs like all others. What
// is theirs alone is in test_inplace.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/elementwise.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

/// f(copy of the first input, the second).
template <class F, class R>
OpCase changing(const char* op, const char* variant, const char* torch, std::vector<Input> inputs,
                std::vector<DType> dtypes, F f, R r) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.torch = torch;
  c.inputs = std::move(inputs);
  c.dtypes = std::move(dtypes);
  c.call = [f](const std::vector<Tensor>& t) {
    const Tensor y = t[0].clone();
    f(y, t.back());
    return std::vector<Tensor>{y};
  };
  c.expected = [r](const std::vector<Array>& a) {
    return std::vector<Array>{reference::zip(a.front(), a.back(), r)};
  };
  return c;
}

}  // namespace

void add_inplace_cases(std::vector<OpCase>& list) {
  const std::vector<DType> numbers{DType::uint8,    DType::int32,   DType::int64,  DType::float16,
                                   DType::bfloat16, DType::float32, DType::float64};
  const std::vector<DType> floats = floating_dtypes();
  const std::vector<Input> same{{{2, 3}}, {{2, 3}}}, row{{{2, 3, 2}}, {{3, 1}}}, one{{{2, 3}}};
  const std::vector<Input> divided{{{2, 3}}, {{2, 3}, Input::Kind::nonzero}};
  const std::vector<DType> signed_numbers{DType::int32,    DType::int64,   DType::float16,
                                          DType::bfloat16, DType::float32, DType::float64};
  const auto plus = [](double a, double b) { return a + b; };
  const auto times = [](double a, double b) { return a * b; };
  list.push_back(changing(
      "add_", "", "x0.clone().add_(x1)", same, all_dtypes(), [](T y, T b) { y.add_(b); }, plus));
  list.push_back(changing(
      "add_", "broadcast", "x0.clone().add_(x1)", row, all_dtypes(), [](T y, T b) { y.add_(b); },
      plus));
  list.push_back(changing(
      "add_", "alpha -0.5", "x0.clone().add_(x1, alpha=-0.5)", same, floats,
      [](T y, T b) { y.add_(b, -0.5); }, [](double a, double b) { return a - 0.5 * b; }));
  list.push_back(changing(
      "add_", "a number", "x0.clone().add_(3)", one, numbers, [](T y, T) { y.add_(3); },
      [](double a, double) { return a + 3; }));
  list.push_back(changing(
      "sub_", "", "x0.clone().sub_(x1)", same, numbers, [](T y, T b) { y.sub_(b); },
      [](double a, double b) { return a - b; }));
  list.push_back(changing(
      "sub_", "broadcast, alpha 2", "x0.clone().sub_(x1, alpha=2)", row, floats,
      [](T y, T b) { y.sub_(b, 2); }, [](double a, double b) { return a - 2 * b; }));
  list.push_back(changing(
      "mul_", "", "x0.clone().mul_(x1)", same, all_dtypes(), [](T y, T b) { y.mul_(b); }, times));
  list.push_back(changing(
      "mul_", "broadcast", "x0.clone().mul_(x1)", row, numbers, [](T y, T b) { y.mul_(b); },
      times));
  list.push_back(changing(
      "mul_", "a number", "x0.clone().mul_(-0.5)", one, floats, [](T y, T) { y.mul_(-0.5); },
      [](double a, double) { return a * -0.5; }));
  list.push_back(changing(
      "div_", "", "x0.clone().div_(x1)", divided, floats, [](T y, T b) { y.div_(b); },
      [](double a, double b) { return a / b; }));
  list.push_back(changing(
      "div_", "by 4", "x0.clone().div_(4)", one, floats, [](T y, T) { y.div_(4); },
      [](double a, double) { return a / 4; }));
  list.push_back(changing(
      "clamp_", "", "x0.clone().clamp_(-1, 5)", one, signed_numbers,
      [](T y, T) { y.clamp_(-1, 5); }, [](double a, double) { return std::clamp(a, -1.0, 5.0); }));
  list.push_back(changing(
      "clamp_", "from above", "x0.clone().clamp_(max=1)", one, numbers,
      [](T y, T) { y.clamp_(std::nullopt, 1); },
      [](double a, double) { return std::min(a, 1.0); }));
  list.push_back(changing(
      "relu_", "", "x0.clone().relu_()", {{{2, 3}, Input::Kind::nonzero}}, numbers,
      [](T y, T) { y.relu_(); }, [](double a, double) { return std::max(a, 0.0); }));
  const auto masked = [](double a, double m) { return m != 0 ? 1.0 : a; };
  list.push_back(changing(
      "masked_fill_", "", "x0.clone().masked_fill_(x1, 1)",
      {{{2, 3}}, {{2, 3}, Input::Kind::boolean}}, all_dtypes(),
      [](T y, T m) { y.masked_fill_(m, 1); }, masked));
  list.push_back(changing(
      "masked_fill_", "broadcast", "x0.clone().masked_fill_(x1, 1)",
      {{{2, 3, 2}}, {{3, 1}, Input::Kind::boolean}}, all_dtypes(),
      [](T y, T m) { y.masked_fill_(m, 1); }, masked));
  const auto second = [](double, double b) { return b; };
  list.push_back(changing(
      "copy_", "", "x0.clone().copy_(x1)", same, all_dtypes(), [](T y, T b) { y.copy_(b); },
      second));
  list.push_back(changing(
      "copy_", "broadcast", "x0.clone().copy_(x1)", row, all_dtypes(), [](T y, T b) { y.copy_(b); },
      second));
  for (std::size_t i = list.size() - 2; i < list.size(); ++i) list[i].across_devices = true;
  list.push_back(changing(
      "fill_", "", "x0.clone().fill_(1)", one, all_dtypes(), [](T y, T) { y.fill_(1); },
      [](double, double) { return 1.0; }));
  list.back().differentiable = false;  // the old numbers are gone
  list.push_back(changing(
      "zero_", "", "x0.clone().zero_()", one, all_dtypes(), [](T y, T) { y.zero_(); },
      [](double, double) { return 0.0; }));
  list.back().differentiable = false;
  on_device::add_inplace_errors(list);
}

void on_device::add_inplace_errors(std::vector<OpCase>& list) {
  const auto of = [](DType t) { return random_tensor({2, 3}, t); };
  const auto changed = [&](const char* op, auto change) {
    const auto with = [change](T other) { return change(random_tensor({2, 3}), other); };
    BadInputs bad(list, op);
    bad.of("other")
        .undefined(with)
        .elsewhere(with, {2, 3})
        .shapes(with, {{2}, {4, 3}}, "expected shapes that broadcast")
        .shapes(with, {{2, 2, 3}}, "expected a shape that broadcasts to \\[2, 3\\], got ");
    bad.refused("DTypeError", str(op, ": expected an operand that int64 can hold, got float32"),
                [change, of] { return change(of(DType::int64), of(DType::float32)); });
  };
  changed("add_", [](T y, T other) {
    y.add_(other);
    return 0;
  });
  changed("sub_", [](T y, T other) {
    y.sub_(other);
    return 0;
  });
  changed("mul_", [](T y, T other) {
    y.mul_(other);
    return 0;
  });
  const auto quotient = [of](T other) { return of(DType::float32).div_(other); };
  BadInputs(list, "div_")
      .of("other")
      .undefined(quotient)
      .elsewhere(quotient, {2, 3})
      .shapes(quotient, {{2}, {4, 3}, {2, 2, 3}}, "expected .*shape.* broadcast")
      .of("value")
      .types([](T y) { return y.div_(2); }, {2, 3}, {DType::int32, DType::int64, DType::bool_},
             "expected a floating point tensor, got ");
  for (const char* bound : {"min", "max"}) {
    const auto cut = [of, low = *(bound + 1) == 'i'](double b) {
      return low ? of(DType::int32).clamp_(b, 3) : of(DType::int32).clamp_(std::nullopt, b);
    };
    BadInputs(list, "clamp_")
        .of(bound)
        .values(cut, std::vector<double>{0.5, NAN, -2.25}, "DTypeError",
                "expected bounds that int32 can hold, got ");
  }
  const auto filled = [of](T mask) { return of(DType::float32).masked_fill_(mask, 1); };
  BadInputs(list, "masked_fill_")
      .of("mask")
      .undefined(filled)
      .elsewhere(filled, {2, 3}, DType::bool_)
      .types(filled, {2, 3}, {DType::uint8, DType::float32}, "expected a bool mask, got ")
      .shapes(filled, {{2}, {2, 2, 3}}, "expected .*shape.* broadcast", "ShapeError", DType::bool_);
  const std::vector<double> parts{0.5, NAN, INFINITY};
  const auto add_scaled = [of](double alpha) {
    return of(DType::int32).add_(of(DType::int32), alpha);
  };
  const auto sub_scaled = [of](double alpha) {
    return of(DType::int32).sub_(of(DType::int32), alpha);
  };
  BadInputs(list, "add_")
      .of("alpha")
      .values(add_scaled, parts, "DTypeError", "expected a whole alpha for int32, got ");
  BadInputs(list, "sub_")
      .of("alpha")
      .values(sub_scaled, parts, "DTypeError", "expected a whole alpha for int32, got ");
  for (const DType t : {DType::int32, DType::bool_}) {
    const std::string text = str("expected a number that ", t, " can hold, got ");
    BadInputs(list, "add_")
        .of("value")
        .values([of, t](double v) { return of(t).add_(v); }, parts, "DTypeError", text);
    if (t != DType::bool_)
      BadInputs(list, "sub_")
          .of("value")
          .values([of, t](double v) { return of(t).sub_(v); }, parts, "DTypeError", text);
    BadInputs(list, "mul_")
        .of("value")
        .values([of, t](double v) { return of(t).mul_(v); }, parts, "DTypeError", text);
  }
  BadInputs(list, "masked_fill_")
      .of("value")
      .values(
          [of](double v) {
            return of(DType::int32)
                .masked_fill_(on_device::ones({2, 3}, {.dtype = DType::bool_}), v);
          },
          std::vector<double>{NAN, INFINITY, 1e10}, "DTypeError", "expected .*int32.*, got ");
  BadInputs(list, "fill_")
      .of("value")
      .values([of](double v) { return of(DType::int32).fill_(v); },
              std::vector<double>{NAN, INFINITY, 1e10}, "DTypeError",
              "expected a number that int32 can hold, got ");
  const auto copied = [of](T source) { return of(DType::float32).copy_(source); };
  BadInputs(list, "copy_")
      .of("source")
      .undefined(copied)
      .shapes(copied, {{2}, {4, 3}}, "expected shapes that broadcast")
      .shapes(copied, {{1, 2, 3}, {2, 2, 3}},
              "expected a shape that broadcasts to \\[2, 3\\], got ");
}

}  // namespace braid::test
