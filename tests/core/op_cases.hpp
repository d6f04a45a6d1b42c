#pragma once
// One record an op: sample inputs, what is called, what is expected, how exact. The generic tests (test_ops*.cpp) run over all of them; a test fails for an op without one.
#include <functional>
#include <string>
#include <vector>

#include "reference/array.hpp"
#include "support/gradcheck.hpp"
#include "support/tensors.hpp"

namespace braid::test {

struct Input {
  enum class Kind {
    value,     ///< anything
    positive,  ///< 0.3 … 3
    nonzero,   ///< |x| >= 0.2
    distinct,  ///< no two elements, of this input or another one, are near each other
    boolean,   ///< bool, whatever the type of the case
    index      ///< int64, -below <= x < below, whatever the type of the case
  };
  Sizes shape;
  Kind kind = Kind::value;
  std::int64_t below = 0;
  bool negative = true;  ///< of an index: negative ones too
};

enum class Accuracy {
  exact,      ///< the reference, rounded once
  ulps,       ///< 4 steps of the type; 1 for 16-bit types
  tolerance,  ///< tolerance(dtype)
  bound       ///< OpCase::bound
};

struct OpCase {
  std::string op;       ///< as it is declared
  std::string variant;  ///< what is special about this case
  std::vector<Input> inputs;
  Function call;
  std::function<std::vector<Array>(const std::vector<Array>&)> expected;
  std::vector<DType> dtypes;
  Accuracy accuracy = Accuracy::exact;
  bool differentiable = true;
  bool kinks = false;  ///< not smooth where two elements are equal
  std::function<DType(DType)> result = [](DType t) { return t; };
  std::function<std::vector<Array>(const std::vector<Array>&)> bound = {};  ///< in units of the rounding error of the accumulator
  [[nodiscard]] std::string name() const { return variant.empty() ? op : op + ", " + variant; }
};

/// Fixed type of an input, whatever the type of the case.
[[nodiscard]] inline DType type_of(const Input& input, DType dtype) {
  return input.kind == Input::Kind::boolean ? DType::bool_ : input.kind == Input::Kind::index ? DType::int64 : dtype;
}

/// Input number `i` of a case, in a layout.
[[nodiscard]] Tensor sample(const Input& input, std::size_t i, DType dtype, const Layout& layout, Device device, std::uint64_t seed);

/// Empty if `got` is as exact as the case wants.
[[nodiscard]] std::string judge(const OpCase& c, std::size_t output, const Tensor& got, const std::vector<Array>& inputs);

/// All cases.
[[nodiscard]] const std::vector<OpCase>& op_cases();

// Parts of the table.
void add_elementwise_cases(std::vector<OpCase>& list);
void add_reduction_cases(std::vector<OpCase>& list);
void add_product_cases(std::vector<OpCase>& list);
void add_join_cases(std::vector<OpCase>& list);
void add_view_cases(std::vector<OpCase>& list);

/// One array to one array, as OpCase::expected.
template <class F>
[[nodiscard]] auto expecting(F f) {
  return [f](const std::vector<Array>& a) -> std::vector<Array> {
    if constexpr (std::is_invocable_v<F, const std::vector<Array>&>) return f(a);
    else if constexpr (std::is_invocable_v<F, const Array&>) return {f(a.at(0))};
    else if constexpr (std::is_invocable_v<F, const Array&, const Array&>) return {f(a.at(0), a.at(1))};
    else return {f(a.at(0), a.at(1), a.at(2))};
  };
}

}  // namespace braid::test
