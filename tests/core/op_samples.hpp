#pragma once
// The inputs with which ops are compared with PyTorch, and PyTorch's results: tests/goldens/ops,
// written by tests/goldens/make_op_goldens.py.
#include <optional>
#include <string>
#include <vector>

#include "op_cases.hpp"

namespace braid::test {

/// One set of inputs of a case. Its numbers have 8 significant bits, so that every dtype of
/// `dtypes` represents them and all share one golden.
struct Sample {
  std::string kind;           ///< "numbers", "one element", "empty (2)", "nan first", "integers", …
  std::vector<Array> inputs;  ///< contiguous
  std::vector<DType> given;   ///< the dtype of each input in PyTorch: float64, int64, uint8 or bool
  std::vector<DType> dtypes;  ///< the dtypes of the case that it applies to
  bool every_layout = false;  ///< else the contiguous one and one other
  bool gradient = true;       ///< gradients are compared too
  bool has_float32 = false;   ///< PyTorch's float32 values are stored too
};

/// Returns all samples of a case: numbers for each family of its dtypes. Floating point ones also
/// have one element, no element, and NaN and infinities at three positions (a third of these with
/// gradients).
[[nodiscard]] std::vector<Sample> samples_of(const OpCase& c);

/// The incoming gradient of element i of output k. The script has the same formula.
[[nodiscard]] inline double incoming(std::int64_t i, std::size_t k) {
  return (static_cast<double>((37 * i + 11 * static_cast<std::int64_t>(k)) % 64) - 31.5) / 32;
}
/// The incoming gradient of a whole output, in its dtype.
[[nodiscard]] Tensor incoming_like(const Tensor& y, std::size_t k);

/// Makes a tensor of the numbers, in a layout in which no element repeats.
[[nodiscard]] Tensor laid_out(const Array& values, const Layout& layout, DType dtype,
                              Device device);

/// Returns a hash of the inputs and of the PyTorch call: a golden with another hash is stale. It
/// has 52 bits, so that a double represents it.
[[nodiscard]] double fingerprint(const OpCase& c, const Sample& s);

/// PyTorch's results.
struct Answer {
  bool refused = false;
  std::vector<Array> outputs;
  /// for each floating input; none if PyTorch has none, and none for all inputs unless the case is
  /// differentiable
  std::vector<std::optional<Array>> gradients;
  /// outputs for float32 inputs, if the sample has them
  std::vector<Array> float32;
};

/// Throws std::runtime_error with the command to run if the golden is missing or stale.
[[nodiscard]] Answer answer_of(const OpCase& c, const Sample& s);

/// Writes the samples of every family into a folder for the script.
void write_samples(const std::string& folder);

/// Returns the difference that the case declares for "<kind>: <what>", or null.
[[nodiscard]] const Difference* declared_difference(const OpCase& c, const std::string& where);

}  // namespace braid::test
