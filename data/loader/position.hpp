#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/state_dict.hpp>

// The position of a loader as the state that a checkpoint keeps: one int64 for each name.
namespace braid::data::detail {

[[nodiscard]] StateDict numbers_state(std::span<const std::string_view> names,
                                      std::span<const std::int64_t> values);
/// Returns the values of such a state. Throws ArgumentError, naming `op`, for a name that is
/// missing, not known or twice, and for another tensor.
[[nodiscard]] std::vector<std::int64_t> load_numbers(const char* op,
                                                     std::span<const std::string_view> names,
                                                     std::span<const StateDict::value_type> dict);
/// Throws ArgumentError, naming `op`, if epoch < 0 or the count of batches up to it can overflow.
void check_epoch_of(const std::string& op, std::int64_t epoch, std::int64_t batches);

}  // namespace braid::data::detail
