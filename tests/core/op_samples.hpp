#pragma once
// The inputs on which ops are compared with PyTorch, and what PyTorch made of them:
// tests/goldens/ops, written by tests/goldens/make_op_goldens.py.
#include <optional>
#include <string>
#include <vector>

#include "op_cases.hpp"

namespace braid::test {

/// One set of inputs of a case. Its numbers have 8 significant bits, so that every type of `dtypes`
/// holds them and all of them share one golden.
struct Sample {
  std::string kind;           ///< "numbers", "one element", "empty (2)", "nan first", "integers", …
  std::vector<Array> inputs;  ///< dense
  std::vector<DType> given;   ///< what PyTorch gets for each: float64, int64, uint8 or bool
  std::vector<DType> dtypes;  ///< the types of the case that it is for
  bool every_layout = false;  ///< else dense and one other layout
  bool gradient = true;       ///< gradients are compared too
  bool has_float32 = false;   ///< PyTorch's float32 values are kept too
};

/// All of a case: numbers of each family of types that it takes; floating point ones also with one
/// element, with none, with NaN and infinities in three places (a third of those with gradients).
[[nodiscard]] std::vector<Sample> samples_of(const OpCase& c);

/// The gradient that flows into element i of output k. The script has the same formula.
[[nodiscard]] inline double incoming(std::int64_t i, std::size_t k) {
  return (static_cast<double>((37 * i + 11 * static_cast<std::int64_t>(k)) % 64) - 31.5) / 32;
}
/// For a whole output, in its type.
[[nodiscard]] Tensor incoming_like(const Tensor& y, std::size_t k);

/// The numbers in a layout in which no element repeats.
[[nodiscard]] Tensor laid_out(const Array& values, const Layout& layout, DType dtype,
                              Device device);

/// Of the inputs and of the words of the call: a golden of other ones is stale. 52 bits, so that a
/// double holds it.
[[nodiscard]] double fingerprint(const OpCase& c, const Sample& s);

/// What PyTorch answered.
struct Answer {
  bool refused = false;
  std::vector<Array> outputs;
  /// of each floating input; none where PyTorch has none, and all none unless the case is
  /// differentiable
  std::vector<std::optional<Array>> gradients;
  /// outputs for float32 inputs, if the sample has them
  std::vector<Array> float32;
};

/// Throws std::runtime_error that says what to run if there is no golden, or a stale one.
[[nodiscard]] Answer answer_of(const OpCase& c, const Sample& s);

/// Writes every family's samples into a folder for the script.
void write_samples(const std::string& folder);

/// The text of a difference that the case declares for "<kind>: <what>"; empty if it declares none.
[[nodiscard]] const Difference* declared_difference(const OpCase& c, const std::string& where);

}  // namespace braid::test
