#pragma once
// One record per op: sample inputs, the call, the expected results and their accuracy. The generic
// tests (test_ops*.cpp) run over all records. A test fails for an op without a record.
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
    distinct,     ///< no two elements, also of different inputs, are close
    boolean,      ///< bool, whatever the dtype of the case
    index         ///< int64, -below <= x < below, whatever the dtype of the case
  };
  Sizes shape;
  Kind kind = Kind::value;
  std::int64_t below = 0;
  bool negative = true;   ///< an index may be negative
  bool optional = false;  ///< may be undefined
};

enum class Accuracy {
  exact,      ///< the reference, rounded once
  ulps,       ///< 4 ULP of the dtype; 1 for 16-bit dtypes
  tolerance,  ///< tolerance(dtype)
  bound       ///< OpCase::bound
};

/// A call that must throw and leave its arguments unchanged.
struct BadInput {
  std::string argument;        ///< the wrong parameter; each needs at least three
  std::function<void()> call;  ///< creates its inputs on here()
  std::string type;            ///< the exact exception type: "ShapeError"
  std::string text;            ///< a regular expression that is searched in what()
};

/// A deliberate difference from PyTorch: op_differences.cpp.
struct Difference {
  /// a regular expression that is searched in "<kind of sample>: output 0", "…: gradient of x0" or
  /// "…: refused" (op_samples.hpp)
  std::string where;
  std::string reason;
  bool always = true;  ///< every match must differ; if false, it depends on the underlying library
};

/// A parameter that cannot be wrong in three ways.
struct FreeParameter {
  std::string name, reason;
};

inline DType same(DType t) { return t; }

struct OpCase {
  std::string op;       ///< the name of its declaration
  std::string variant;  ///< what distinguishes this case
  std::vector<Input> inputs;
  Function call;
  std::function<std::vector<Array>(const std::vector<Array>&)> expected;
  std::vector<DType> dtypes;
  Accuracy accuracy = Accuracy::exact;
  bool differentiable = true;
  bool kinks = false;           ///< not differentiable where two elements are equal
  bool across_devices = false;  ///< accepts inputs on several devices
  bool own_sizes = false;       ///< `expected` and `bound` hold only for these sizes
  DType (*result)(DType) = same;
  /// in units of the rounding error of the accumulator
  std::function<std::vector<Array>(const std::vector<Array>&)> bound = {};
  /// The same call in PyTorch, with inputs x0, x1, … ("torch.clamp(x0, -0.5, 0.7)", a tuple for
  /// several outputs). The goldens are made from it.
  std::string torch = {};
  std::vector<BadInput> errors = {};  ///< in one record per op
  /// For a case without a PyTorch call: a single {"", the reason}. An entry fails if it matches
  /// nothing, or if a match does not differ.
  std::vector<Difference> differs = {};
  /// besides bools and enumerations, which are always free
  std::vector<FreeParameter> free = {};
  /// The parameters of each overload, "x dim", in one record per op (parameters() in
  /// op_case_makers.hpp). Overloads (), (x) and (a, b) need none.
  std::vector<std::string> overloads = {};
  /// set by op_cases(): the goldens are in tests/goldens/ops/<family>.safetensors
  std::string family = {};
  [[nodiscard]] std::string name() const { return variant.empty() ? op : op + ", " + variant; }
};

/// Returns the dtype of an input: fixed for some kinds, else the dtype of the case.
[[nodiscard]] inline DType type_of(const Input& input, DType dtype) {
  return input.kind == Input::Kind::boolean ? DType::bool_
         : input.kind == Input::Kind::index ? DType::int64
                                            : dtype;
}

/// Returns a generator of the numbers of input `i` of a case.
[[nodiscard]] std::function<double()> numbers_of(const Input& input, std::size_t i, DType dtype,
                                                 std::uint64_t seed);
/// Makes input `i` of a case in a layout.
[[nodiscard]] Tensor sample(const Input& input, std::size_t i, DType dtype, const Layout& layout,
                            Device device, std::uint64_t seed);

/// Returns the contiguous layout for every input.
[[nodiscard]] std::vector<Layout> dense(const OpCase& c);
/// Makes all inputs of a case in these layouts.
[[nodiscard]] std::vector<Tensor> inputs_of(const OpCase& c, DType dtype,
                                            const std::vector<Layout>& layout, Device device,
                                            std::uint64_t seed = 1);
/// Returns "add, broadcast, float32 on cpu:0, contiguous, …".
[[nodiscard]] std::string describe(const std::string& name, DType dtype, Device device,
                                   const std::vector<Layout>& layout);
/// Returns the devices of the run: "cpu:0, cpu:1".
[[nodiscard]] std::string names_of_devices();

/// Maps sizes of a case's inputs to new sizes; other sizes stay.
using Resize = std::map<std::int64_t, std::int64_t>;
/// Returns the case with resized inputs; its indices stay in the new ranges.
[[nodiscard]] OpCase resized(OpCase c, const Resize& to);

/// Returns combinations of layouts: each input in turn takes each of its layouts, then all inputs
/// change together. The first combination is contiguous.
[[nodiscard]] std::vector<std::vector<Layout>> layout_combinations(const OpCase& c);

/// Returns the largest error of `got`, in units of the error that the case allows.
[[nodiscard]] double error_units(const OpCase& c, std::size_t output, const Tensor& got,
                                 const Array& want, const std::vector<Array>& inputs);
/// Returns "" if `got` is as accurate as the case requires, else the difference.
[[nodiscard]] std::string evaluate(const OpCase& c, std::size_t output, const Tensor& got,
                                   const std::vector<Array>& inputs);

/// Returns all cases.
[[nodiscard]] const std::vector<OpCase>& op_cases();

// Parts of the table.
void add_unary_cases(std::vector<OpCase>& list);
void add_binary_cases(std::vector<OpCase>& list);
void add_bitwise_cases(std::vector<OpCase>& list);
void add_compare_cases(std::vector<OpCase>& list);
void add_where_cases(std::vector<OpCase>& list);
void add_lerp_cases(std::vector<OpCase>& list);
void add_activation_cases(std::vector<OpCase>& list);
void add_reduce_cases(std::vector<OpCase>& list);
void add_statistics_cases(std::vector<OpCase>& list);
void add_scan_cases(std::vector<OpCase>& list);
void add_sort_cases(std::vector<OpCase>& list);
void add_softmax_cases(std::vector<OpCase>& list);
void add_loss_bound_cases(std::vector<OpCase>& list);
void add_loss_cases(std::vector<OpCase>& list);
/// States the parameters of both.
void add_loss_parameters(std::vector<OpCase>& list);
void add_matmul_cases(std::vector<OpCase>& list);
void add_linear_cases(std::vector<OpCase>& list);
void add_einsum_cases(std::vector<OpCase>& list);
void add_join_cases(std::vector<OpCase>& list);
void add_index_cases(std::vector<OpCase>& list);
void add_gather_cases(std::vector<OpCase>& list);
void add_masks_cases(std::vector<OpCase>& list);
void add_views_cases(std::vector<OpCase>& list);
void add_shape_cases(std::vector<OpCase>& list);
void add_rearrange_cases(std::vector<OpCase>& list);
void add_pad_cases(std::vector<OpCase>& list);
void add_diagonal_cases(std::vector<OpCase>& list);
void add_inplace_cases(std::vector<OpCase>& list);
void add_norm_cases(std::vector<OpCase>& list);
void add_attention_cases(std::vector<OpCase>& list);
void add_dropout_cases(std::vector<OpCase>& list);
void add_rnn_cases(std::vector<OpCase>& list);
void add_conv_cases(std::vector<OpCase>& list);
void add_pool_cases(std::vector<OpCase>& list);
/// Adds the differences to the cases of the ops that they name, in all families.
void add_differences(std::vector<OpCase>& list);

/// Wraps a function of one or two arrays, or of all, as OpCase::expected.
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
