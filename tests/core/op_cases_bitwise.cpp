// Cases of functions of bits. Their inputs are made whole first: ⌊4x⌋ as int64, and 0 for NaN and
// infinities. test_operators.cpp and the kernels' tests have the other dtypes.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/binary.hpp"

namespace braid::test {
namespace {

Tensor whole_of(T x) {
  const Tensor wide = x.to(DType::float64);
  return floor(masked_fill(wide, !isfinite(wide), 0) * 4).to(DType::int64);
}
double whole_of(double x) { return std::isfinite(x) ? std::floor(4 * x) : 0; }
const char* const kWholeInTorch = "torch.nan_to_num(%.double(), 0., 0., 0.).mul(4).floor().long()";
/// Returns the call in PyTorch: each % of the words is followed by the number of an input.
std::string in_torch(std::string words) {
  const std::string whole = kWholeInTorch;
  for (std::size_t at; (at = words.find('%')) != words.npos;) {
    std::string input = whole;
    input.replace(input.find('%'), 1, str("x", words[at + 1]));
    words.replace(at, 2, input);
  }
  return words;
}

struct Bits {
  const char* op;
  Tensor (*call)(T, T);
  Tensor (*with_number)(T, const Scalar&);
  Of2 expected;
};
const Bits kBits[] = {
    {"bitwise_and", bitwise_and, bitwise_and, reference::bitwise_and},
    {"bitwise_or", bitwise_or, bitwise_or, reference::bitwise_or},
    {"bitwise_xor", bitwise_xor, bitwise_xor, reference::bitwise_xor},
    {"bitwise_left_shift", bitwise_left_shift, bitwise_left_shift,
     [](double a, double b) { return reference::shifted_left(a, b, 64, true); }},
    {"bitwise_right_shift", bitwise_right_shift, bitwise_right_shift,
     [](double a, double b) { return reference::shifted_right(a, b, 64); }},
};
/// A shift of a number by a tensor.
struct Shift {
  const char* op;
  Tensor (*call)(const Scalar&, T);
  Of2 expected;
};
const Shift kShifts[] = {{"bitwise_left_shift", bitwise_left_shift, kBits[3].expected},
                         {"bitwise_right_shift", bitwise_right_shift, kBits[4].expected}};

OpCase& add(Cases& list, const char* op, const char* variant, const std::string& torch,
            std::vector<Input> inputs) {
  OpCase& c = push(list, op, variant, in_torch(torch), std::move(inputs));
  c.differentiable = false;
  c.result = as_int64;
  return c;
}

void refuse_bits(Cases& list, const Bits& f) {
  const bool shifts = std::string(f.op).ends_with("shift");
  const char* const words = shifts ? "integers, got " : "integers or bools, got ";
  const Types refused = shifts ? Types{DType::bool_, DType::float16, DType::float32} : kFloats;
  const auto left = [call = f.call](T a) {
    return call(a, made({3}, is_floating(a.dtype()) ? a.dtype() : DType::uint8));
  };
  const auto right = [call = f.call](T b) { return call(made({2, 3}, b.dtype()), b); };
  const auto number = [call = f.with_number](T a) { return call(a, 1.5); };
  BadInputs(list, f.op)
      .tensor(
          "a", [call = f.call](T a) { return call(a, made({3}, DType::int64)); }, {2, 3},
          DType::int64)
      .shapes(left, {{2}, {3, 4}}, kBroadcast, kShape, DType::int64)
      .tensor(
          "b", [call = f.call](T b) { return call(made({2, 3}, DType::int64), b); }, {2, 3},
          DType::int64)
      .shapes(right, {{2}, {2, 2}}, kBroadcast, kShape, DType::int64)
      .types(right, {2, 3}, refused, words)
      .types(number, {2, 3}, {DType::int64, DType::float16},
             shifts ? "integers, got float.*" : "integers or bools, got float.*");
}

}  // namespace

void add_bitwise_cases(Cases& list) {
  for (const Bits& f : kBits) {
    for (const auto& [variant, a, b] : std::vector<std::tuple<const char*, Sizes, Sizes>>{
             {"", {2, 3}, {2, 3}}, {"broadcast", {2, 1, 3}, {4, 1}}, {"rank 0", {}, {2, 2}}}) {
      OpCase& c = add(list, f.op, variant, str("torch.", f.op, "(%0, %1)"), {{a}, {b}});
      c.call = function_of([call = f.call](T x, T y) { return call(whole_of(x), whole_of(y)); });
      c.expected = [r = f.expected](Arrays x) {
        return std::vector<Array>{reference::zip(
            x.at(0), x.at(1), [r](double p, double q) { return r(whole_of(p), whole_of(q)); })};
      };
    }
    OpCase& c = add(list, f.op, "with a number", str("torch.", f.op, "(%0, 3)"), {{{2, 3}}});
    c.call = function_of([call = f.with_number](T x) { return call(whole_of(x), 3); });
    c.expected = expecting([r = f.expected](A a) {
      return reference::map(a, [r](double x) { return r(whole_of(x), 3); });
    });
    refuse_bits(list, f);
  }
  for (const Shift& f : kShifts) {
    OpCase& c = add(list, f.op, "number first", str("torch.", f.op, "(-5, %0)"), {{{2, 3}}});
    c.call = function_of([call = f.call](T x) { return call(-5, whole_of(x)); });
    c.expected = expecting([r = f.expected](A a) {
      return reference::map(a, [r](double x) { return r(-5, whole_of(x)); });
    });
  }
  OpCase& c = add(list, "bitwise_not", "", "torch.bitwise_not(%0)", {{{2, 3}}});
  c.call = function_of([](T x) { return bitwise_not(whole_of(x)); });
  c.expected =
      expecting([](A a) { return reference::map(a, [](double x) { return -1 - whole_of(x); }); });
  BadInputs(list, "bitwise_not")
      .tensor("x", [](T x) { return bitwise_not(x); })
      .types([](T x) { return bitwise_not(x); }, {2}, kFloats, "integers or bools, got ");
}

}  // namespace braid::test
