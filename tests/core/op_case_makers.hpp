#pragma once
// Short ways to write records of elementwise ops.
#include <utility>

#include <braid/core/ops/create.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/elementwise.hpp"
#include "support/on_device.hpp"

namespace braid::test {

inline DType floating(DType t) { return is_floating(t) ? t : DType::float32; }
inline DType boolean(DType) { return DType::bool_; }
inline const std::vector<DType>& numbers_of_any_type() {
  static const std::vector<DType> list{DType::uint8,   DType::int32,    DType::int64,
                                       DType::float16, DType::bfloat16, DType::float32,
                                       DType::float64};
  return list;
}

/// What any op with a tensor refuses: one that was never made, one moved away, and more than there
/// is room for.
template <class F>
BadInputs bad_tensor(std::vector<OpCase>& list, const char* op, const char* argument, F f) {
  BadInputs bad(list, op);
  bad.of(argument).undefined(f).no_room(f).refused(
      "ArgumentError", "expected a defined tensor, got an undefined one", [f] {
        Tensor x = on_device::ones({2});
        const Tensor taken = std::move(x);
        (void)f(x);  // NOLINT(bugprone-use-after-move): that is the case
      });
  return bad;
}

/// f of one tensor of shapes [2, 3, 2], [1] and [0, 3]; `torch` is the call in PyTorch's words. r:
/// the same of one number.
template <class F, class R>
void add_unary_cases(std::vector<OpCase>& list, const char* op, const std::string& variant,
                     const std::string& torch, F f, R r, Input::Kind kind,
                     std::vector<DType> dtypes, Accuracy accuracy,
                     std::function<DType(DType)> result = floating) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.call = function_of(f);
  c.expected = expecting([r](const Array& a) {
    return reference::map(a, [r](double x) { return static_cast<double>(r(x)); });
  });
  c.dtypes = std::move(dtypes);
  c.accuracy = accuracy;
  c.result = std::move(result);
  c.torch = torch;
  const Sizes shapes[] = {{2, 3, 2}, {1}, {0, 3}};
  const char* names[] = {"", "one element", "empty"};
  for (int i = 0; i < (variant.empty() ? 3 : 1); ++i) {
    c.inputs = {{shapes[i], kind}};
    if (i > 0) c.variant = names[i];
    list.push_back(c);
  }
}

}  // namespace braid::test
