#pragma once
#include <span>
#include <string_view>

#include <braid/nn/walks.hpp>

namespace braid::optim::detail {

/// A tensor of the state of a schedule or a scaler, and the numbers that it may hold.
struct StateField {
  std::string_view name;
  Tensor* tensor;
  bool (*fits)(double value);
  std::string_view expected;  ///< what fits, for the error
};
/// The numbers of a field.
[[nodiscard]] bool is_rate(double value);   ///< finite and at least 0
[[nodiscard]] bool is_count(double value);  ///< at least 0 and exact in double
inline constexpr std::string_view kRates = "finite numbers >= 0", kCounts = "counts >= 0";

/// Loads a dict into the fields, as load_state_dict does. Throws ArgumentError also for a number
/// that does not fit; then nothing was changed.
LoadReport load_fields(std::span<const StateField> fields,
                       std::span<const StateDict::value_type> dict, const LoadOptions& options,
                       const char* signature);

}  // namespace braid::optim::detail
