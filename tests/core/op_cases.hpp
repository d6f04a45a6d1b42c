#pragma once
// One record an op: sample inputs, what is called, what is expected, how exact. The generic tests
// (test_ops*.cpp) run over all of them; a test fails for an op without one.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/array.hpp"
#include "support/gradcheck.hpp"
#include "support/tensors.hpp"

namespace braid::test {

struct Input {
  enum class Kind {
    value,        ///< anything
    positive,     ///< 0.3 … 3
    nonzero,      ///< |x| >= 0.2
    unit,         ///< |x| <= 0.9; integers 0
    probability,  ///< 0.1 … 0.9; integers 0 or 1
    above_one,    ///< 1.2 … 4; integers 1 … 9
    distinct,     ///< no two elements, of this input or another one, are near each other
    boolean,      ///< bool, whatever the type of the case
    index         ///< int64, -below <= x < below, whatever the type of the case
  };
  Sizes shape;
  Kind kind = Kind::value;
  std::int64_t below = 0;
  bool negative = true;   ///< of an index: negative ones too
  bool optional = false;  ///< may be undefined
};

enum class Accuracy {
  exact,      ///< the reference, rounded once
  ulps,       ///< 4 steps of the type; 1 for 16-bit types
  tolerance,  ///< tolerance(dtype)
  bound       ///< OpCase::bound
};

/// A call that must be refused, leaving its arguments as they were.
struct BadInput {
  std::string argument;        ///< which parameter is wrong: each of an op has at least three
  std::function<void()> call;  ///< makes its inputs on here()
  std::string type;            ///< of the exception, exactly: "ShapeError"
  std::string text;            ///< a regular expression that finds itself in what()
};

/// Where an op answers otherwise than PyTorch, on purpose: op_differences.cpp.
struct Difference {
  /// a regular expression, found in "<kind of sample>: output 0", "…: gradient of x0" or "…:
  /// refused" (op_samples.hpp)
  std::string where;
  std::string reason;
  bool always = true;  ///< all that `where` finds does differ; else that hangs on the library below
};

/// A parameter that cannot be wrong in three ways.
struct FreeParameter {
  std::string name, reason;
};

inline DType same(DType t) { return t; }

struct OpCase {
  std::string op;       ///< as it is declared
  std::string variant;  ///< what is special about this case
  std::vector<Input> inputs;
  Function call;
  std::function<std::vector<Array>(const std::vector<Array>&)> expected;
  std::vector<DType> dtypes;
  Accuracy accuracy = Accuracy::exact;
  bool differentiable = true;
  bool kinks = false;           ///< not smooth where two elements are equal
  bool across_devices = false;  ///< takes inputs of several devices
  bool own_sizes = false;       ///< `expected` and `bound` are those of these sizes alone
  DType (*result)(DType) = same;
  /// in units of the rounding error of the accumulator
  std::function<std::vector<Array>(const std::vector<Array>&)> bound = {};
  /// The same call in PyTorch's words over x0, x1, … ("torch.clamp(x0, -0.5, 0.7)", a tuple for
  /// several outputs); the goldens are made from it.
  std::string torch = {};
  std::vector<BadInput> errors = {};  ///< in one record of each op
  /// Without words of PyTorch's: a single {"", why there is none}. An entry fails that finds
  /// nothing, or what does not differ.
  std::vector<Difference> differs = {};
  /// beside bools and enumerations, which are free by themselves
  std::vector<FreeParameter> free = {};
  /// set by op_cases(): its goldens are in tests/goldens/ops/<family>.safetensors
  std::string family = {};
  [[nodiscard]] std::string name() const { return variant.empty() ? op : op + ", " + variant; }
};

/// Fixed type of an input, whatever the type of the case.
[[nodiscard]] inline DType type_of(const Input& input, DType dtype) {
  return input.kind == Input::Kind::boolean ? DType::bool_
         : input.kind == Input::Kind::index ? DType::int64
                                            : dtype;
}

/// The numbers of input `i` of a case, one by one.
[[nodiscard]] std::function<double()> numbers_of(const Input& input, std::size_t i, DType dtype,
                                                 std::uint64_t seed);
/// Input number `i` of a case, in a layout.
[[nodiscard]] Tensor sample(const Input& input, std::size_t i, DType dtype, const Layout& layout,
                            Device device, std::uint64_t seed);

/// Every input dense.
[[nodiscard]] std::vector<Layout> dense(const OpCase& c);
/// All inputs of a case, in these layouts.
[[nodiscard]] std::vector<Tensor> inputs_of(const OpCase& c, DType dtype,
                                            const std::vector<Layout>& layout, Device device,
                                            std::uint64_t seed = 1);
/// "add, broadcast, float32 on cpu:0, contiguous, …"
[[nodiscard]] std::string describe(const std::string& name, DType dtype, Device device,
                                   const std::vector<Layout>& layout);
/// The devices of the run: "cpu:0, cpu:1".
[[nodiscard]] std::string names_of_devices();

/// What sizes of a case's inputs become; other sizes stay.
using Resize = std::map<std::int64_t, std::int64_t>;
/// The case with inputs of other sizes; its indices stay below the new ones.
[[nodiscard]] OpCase resized(OpCase c, const Resize& to);

/// The layouts of each input: one input at a time takes each of its layouts, then all of them
/// together. The first is contiguous.
[[nodiscard]] std::vector<std::vector<Layout>> layout_combinations(const OpCase& c);

/// The largest error of `got` in units of what the case allows .
[[nodiscard]] double error_units(const OpCase& c, std::size_t output, const Tensor& got,
                                 const Array& want, const std::vector<Array>& inputs);
/// Empty if `got` is as exact as the case wants.
[[nodiscard]] std::string judge(const OpCase& c, std::size_t output, const Tensor& got,
                                const std::vector<Array>& inputs);

/// All cases.
[[nodiscard]] const std::vector<OpCase>& op_cases();

// Parts of the table.
void add_elementwise_cases(std::vector<OpCase>& list);
void add_function_cases(std::vector<OpCase>& list);
void add_binary_function_cases(std::vector<OpCase>& list);
void add_activation_cases(std::vector<OpCase>& list);
void add_reduction_cases(std::vector<OpCase>& list);
void add_einsum_cases(std::vector<OpCase>& list);
void add_product_cases(std::vector<OpCase>& list);
void add_join_cases(std::vector<OpCase>& list);
void add_rnn_cases(std::vector<OpCase>& list);
void add_loss_cases(std::vector<OpCase>& list);
void add_view_cases(std::vector<OpCase>& list);
void add_inplace_cases(std::vector<OpCase>& list);
void add_scan_cases(std::vector<OpCase>& list);
void add_statistics_cases(std::vector<OpCase>& list);
void add_index_cases(std::vector<OpCase>& list);
void add_shape_cases(std::vector<OpCase>& list);
void add_norm_cases(std::vector<OpCase>& list);
void add_attention_cases(std::vector<OpCase>& list);
void add_conv_cases(std::vector<OpCase>& list);
void add_pool_cases(std::vector<OpCase>& list);
/// To the cases of the ops that it names, from all families.
void add_differences(std::vector<OpCase>& list);

/// One array to one array, as OpCase::expected.
template <class F> [[nodiscard]] auto expecting(F f) {
  return [f](const std::vector<Array>& a) -> std::vector<Array> {
    if constexpr (std::is_invocable_v<F, const std::vector<Array>&>) return f(a);
    else if constexpr (std::is_invocable_v<F, const Array&>) return {f(a.at(0))};
    else if constexpr (std::is_invocable_v<F, const Array&, const Array&>)
      return {f(a.at(0), a.at(1))};
    else return {f(a.at(0), a.at(1), a.at(2))};
  };
}

}  // namespace braid::test
