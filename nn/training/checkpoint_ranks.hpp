#pragma once
// The parts of Checkpoint that concern several ranks.
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <braid/nn/training/checkpoint.hpp>

namespace braid::training::detail {

/// Calls f. Returns what it throws, or null.
template <class F> [[nodiscard]] std::exception_ptr failure_of(const F& f) {
  try {
    f();
    return {};
  } catch (...) {
    return std::current_exception();
  }
}

/// Throws ArgumentError unless rank and size fit.
void check_ranks(const CheckpointRanks& ranks);
/// Returns the error of a rank whose own part of `call` succeeded: names the ranks whose value is
/// not 0.
[[nodiscard]] std::exception_ptr failure_elsewhere(const char* call,
                                                   const std::vector<std::int64_t>& values);
/// Throws ArgumentError unless all ranks have the same value, called `what`.
void check_same(const char* call, const char* what, const std::vector<std::int64_t>& values);
/// Throws ArgumentError unless the sums of all ranks' files of this checkpoint are the same.
void check_same_files(const std::string& name, const std::vector<std::int64_t>& sums);

/// The states of the random number generators of all ranks; always one of the parts.
[[nodiscard]] std::unique_ptr<Part> make_random_part(const CheckpointRanks& ranks);

}  // namespace braid::training::detail
