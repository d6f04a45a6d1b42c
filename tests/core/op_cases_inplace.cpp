// Cases of in-place ops. They change a copy, so that their values, gradients and bad inputs are
// tested like those of other ops. What is specific to in-place ops is tested in test_inplace.cpp.
#include <algorithm>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

/// change(copy of the first input, second input), or change(copy) if there is only one input.
struct Change {
  const char *op, *variant, *torch;
  Sizes a, b;
  Kind kind;  // of the last input
  const Types& dtypes;
  void (*change)(T, T);
  Of2 expected;
  bool alone = false;
};

double sum(double a, double b) { return a + b; }
double product(double a, double b) { return a * b; }
double second(double, double b) { return b; }
double masked(double a, double m) { return m != 0 ? 1.0 : a; }

const Change kChanges[] = {
    {"add_", "", "add_(x1)", Sizes{2, 3}, Sizes{2, 3}, Kind::value, kAll,
     [](T y, T b) { y.add_(b); }, sum},
    {"add_", "broadcast", "add_(x1)", Sizes{2, 3, 2}, Sizes{3, 1}, Kind::value, kAll,
     [](T y, T b) { y.add_(b); }, sum},
    {"add_", "alpha -0.5", "add_(x1, alpha=-0.5)", Sizes{2, 3}, Sizes{2, 3}, Kind::value, kFloats,
     [](T y, T b) { y.add_(b, -0.5); }, [](double a, double b) { return a - 0.5 * b; }},
    {"add_", "a number", "add_(3)", Sizes{2, 3}, Sizes{}, Kind::value, kNumbers,
     [](T y, T) { y.add_(3); }, [](double a, double) { return a + 3; }, true},
    {"sub_", "", "sub_(x1)", Sizes{2, 3}, Sizes{2, 3}, Kind::value, kNumbers,
     [](T y, T b) { y.sub_(b); }, [](double a, double b) { return a - b; }},
    {"sub_", "broadcast, alpha 2", "sub_(x1, alpha=2)", Sizes{2, 3, 2}, Sizes{3, 1}, Kind::value,
     kFloats, [](T y, T b) { y.sub_(b, 2); }, [](double a, double b) { return a - 2 * b; }},
    {"mul_", "", "mul_(x1)", Sizes{2, 3}, Sizes{2, 3}, Kind::value, kAll,
     [](T y, T b) { y.mul_(b); }, product},
    {"mul_", "broadcast", "mul_(x1)", Sizes{2, 3, 2}, Sizes{3, 1}, Kind::value, kNumbers,
     [](T y, T b) { y.mul_(b); }, product},
    {"mul_", "a number", "mul_(-0.5)", Sizes{2, 3}, Sizes{}, Kind::value, kFloats,
     [](T y, T) { y.mul_(-0.5); }, [](double a, double) { return a * -0.5; }, true},
    {"div_", "", "div_(x1)", Sizes{2, 3}, Sizes{2, 3}, Kind::nonzero, kFloats,
     [](T y, T b) { y.div_(b); }, [](double a, double b) { return a / b; }},
    {"div_", "by 4", "div_(4)", Sizes{2, 3}, Sizes{}, Kind::value, kFloats,
     [](T y, T) { y.div_(4); }, [](double a, double) { return a / 4; }, true},
    {"clamp_", "", "clamp_(-1, 5)", Sizes{2, 3}, Sizes{}, Kind::value, kSigned,
     [](T y, T) { y.clamp_(-1, 5); }, [](double a, double) { return std::clamp(a, -1.0, 5.0); },
     true},
    {"clamp_", "from above", "clamp_(max=1)", Sizes{2, 3}, Sizes{}, Kind::value, kNumbers,
     [](T y, T) { y.clamp_(std::nullopt, 1); }, [](double a, double) { return std::min(a, 1.0); },
     true},
    {"relu_", "", "relu_()", Sizes{2, 3}, Sizes{}, Kind::nonzero, kNumbers,
     [](T y, T) { y.relu_(); }, [](double a, double) { return std::max(a, 0.0); }, true},
    {"masked_fill_", "", "masked_fill_(x1, 1)", Sizes{2, 3}, Sizes{2, 3}, Kind::boolean, kAll,
     [](T y, T m) { y.masked_fill_(m, 1); }, masked},
    {"masked_fill_", "broadcast", "masked_fill_(x1, 1)", Sizes{2, 3, 2}, Sizes{3, 1}, Kind::boolean,
     kAll, [](T y, T m) { y.masked_fill_(m, 1); }, masked},
    {"copy_", "", "copy_(x1)", Sizes{2, 3}, Sizes{2, 3}, Kind::value, kAll,
     [](T y, T b) { y.copy_(b); }, second},
    {"copy_", "broadcast", "copy_(x1)", Sizes{2, 3, 2}, Sizes{3, 1}, Kind::value, kAll,
     [](T y, T b) { y.copy_(b); }, second},
    {"fill_", "", "fill_(1)", Sizes{2, 3}, Sizes{}, Kind::value, kAll, [](T y, T) { y.fill_(1); },
     [](double, double) { return 1.0; }, true},
    {"zero_", "", "zero_()", Sizes{2, 3}, Sizes{}, Kind::value, kAll, [](T y, T) { y.zero_(); },
     [](double, double) { return 0.0; }, true},
};

void add_operand_errors(Cases& list) {
  const char* const to_2_3 = "a shape that broadcasts to \\[2, 3\\], got ";
  for (const Change& f : kChanges) {
    const std::string op = f.op;
    if (f.variant[0] != 0 || (op != "add_" && op != "sub_" && op != "mul_")) continue;
    const auto with = [change = f.change](T other) { change(made({2, 3}), other); };
    BadInputs(list, op)
        .tensor("other", with, {2, 3})
        .shapes(with, {{2}, {4, 3}}, "shapes that broadcast .*got ")
        .shapes(with, {{2, 2, 3}}, to_2_3)
        .is(kType, "an operand that int64 can hold, got float32",
            [change = f.change] { change(made({2, 3}, DType::int64), made({2, 3})); });
  }
  const auto quotient = [](T other) { return made({2, 3}).div_(other); };
  BadInputs(list, "div_")
      .tensor("other", quotient, {2, 3})
      .shapes(quotient, {{2}, {4, 3}, {2, 2, 3}}, ".*shape.* broadcast")
      .of("value")
      .types([](T y) { return y.div_(2); }, {2, 3}, {DType::int32, DType::int64, DType::bool_});
  const auto filled = [](T mask) { return made({2, 3}).masked_fill_(mask, 1); };
  BadInputs(list, "masked_fill_")
      .tensor("mask", filled, {2, 3}, DType::bool_)
      .types(filled, {2, 3}, {DType::uint8, DType::float32}, "a bool mask, got ")
      .shapes(filled, {{2}, {2, 2, 3}}, ".*shape.* broadcast", kShape, DType::bool_);
  const auto copied = [](T source) { return made({2, 3}).copy_(source); };
  BadInputs(list, "copy_")
      .tensor("source", copied)
      .shapes(copied, {{2}, {4, 3}}, "shapes that broadcast .*got ")
      .shapes(copied, {{1, 2, 3}, {2, 2, 3}}, to_2_3);
}

struct Number {
  const char *op, *argument;
  Tensor (*call)(T, double);
  const char* text;
  std::vector<double> values;
  Types dtypes = {DType::int32};
};
const std::vector<double> kParts{0.5, kNan, kInf}, kHuge{kNan, kInf, 1e10},
    kFractions{0.5, kNan, -2.25};
const Number kBadNumbers[] = {
    {"clamp_", "min", [](T y, double b) { return y.clamp_(b, 3); },
     "bounds that int32 can hold, got ", kFractions},
    {"clamp_", "max", [](T y, double b) { return y.clamp_(std::nullopt, b); },
     "bounds that int32 can hold, got ", kFractions},
    {"add_", "alpha", [](T y, double v) { return y.add_(made({2, 3}, DType::int32), v); },
     "a whole alpha for int32, got ", kParts},
    {"sub_", "alpha", [](T y, double v) { return y.sub_(made({2, 3}, DType::int32), v); },
     "a whole alpha for int32, got ", kParts},
    {"add_", "value", [](T y, double v) { return y.add_(v); }, "a number that T can hold, got ",
     kParts, Types{DType::int32, DType::bool_}},
    {"sub_", "value", [](T y, double v) { return y.sub_(v); }, "a number that T can hold, got ",
     kParts},
    {"mul_", "value", [](T y, double v) { return y.mul_(v); }, "a number that T can hold, got ",
     kParts, Types{DType::int32, DType::bool_}},
    {"masked_fill_", "value",
     [](T y, double v) { return y.masked_fill_(ones_of({2, 3}, DType::bool_), v); },
     ".*int32.*, got ", kHuge},
    {"fill_", "value", [](T y, double v) { return y.fill_(v); },
     "a number that int32 can hold, got ", kHuge},
};

}  // namespace

void add_inplace_cases(Cases& list) {
  for (const Change& f : kChanges) {
    std::vector<Input> inputs{{f.a, f.alone ? f.kind : Kind::value}};
    if (!f.alone) inputs.push_back({f.b, f.kind});
    OpCase& c = push(list, f.op, f.variant, str("x0.clone().", f.torch), inputs, f.dtypes);
    c.call = [change = f.change](Tensors t) {
      const Tensor y = t[0].clone();
      change(y, t.back());
      return std::vector<Tensor>{y};
    };
    c.expected = [r = f.expected](Arrays a) {
      return std::vector<Array>{reference::zip(a.front(), a.back(), r)};
    };
    c.across_devices = c.op == "copy_";
    c.differentiable = c.op != "fill_" && c.op != "zero_";  // no golden gradients
  }
  add_operand_errors(list);
  for (const Number& n : kBadNumbers)
    for (const DType t : n.dtypes) {
      std::string text = n.text;
      if (const auto at = text.find(" T "); at != text.npos) text.replace(at + 1, 1, name_of(t));
      const auto f = [call = n.call, t](double v) { return call(made({2, 3}, t), v); };
      BadInputs(list, n.op).numbers(n.argument, n.values, kType, text, f);
    }
  parameters(list,
             "add_(other alpha) add_(value) clamp_(min max) copy_(source non_blocking) div_(other) "
             "div_(value) "
             "fill_(value) masked_fill_(mask value) mul_(other) mul_(value) sub_(other alpha) "
             "sub_(value)");
}

}  // namespace braid::test
