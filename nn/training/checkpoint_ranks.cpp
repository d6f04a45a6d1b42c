#include "training/checkpoint_ranks.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include <braid/core/error.hpp>
#include <braid/core/random.hpp>

namespace braid::training {
namespace {

/// The file has one row for each rank: seed and stream. If all rows are the same, it has only one,
/// without the first dim.
class RandomPart final : public detail::Part {
 public:
  explicit RandomPart(const CheckpointRanks& ranks) : ranks_(ranks) {}
  [[nodiscard]] std::string_view role() const noexcept override { return "random"; }
  [[nodiscard]] StateDict save() const override {
    const RandomState now = random_state();
    const std::int64_t own[] = {std::bit_cast<std::int64_t>(now.seed),
                                std::bit_cast<std::int64_t>(now.stream)};
    const std::vector<std::int64_t> all = detail::Agreement(ranks_).gather(own);
    bool same = true;
    for (std::size_t i = 2; i < all.size(); ++i) same = same && all[i] == all[i % 2];
    Tensor t = make_tensor(same ? Shape{2} : Shape{ranks_.size, 2}, DType::int64, Device());
    std::copy_n(all.begin(), t.numel(), t.data<std::int64_t>());
    return StateDict{{"seed_and_stream", t}};
  }
  void load(std::span<const StateDict::value_type> dict) override {
    const bool named = dict.size() == 1 && dict[0].first == "seed_and_stream" &&
                       dict[0].second.dtype() == DType::int64;
    const Shape shape = named ? dict[0].second.shape() : Shape{};
    const std::int64_t rows = shape == Shape{2}                    ? 1
                              : shape.rank() == 2 && shape[1] == 2 ? shape[0]
                                                                   : 0;
    if (rows == 0)
      throw ArgumentError(
          "Checkpoint: expected the state of the random numbers to be two int64 for each rank, "
          "called seed_and_stream, got something else");
    const auto* values = dict[0].second.data<std::int64_t>();
    const auto state_of = [&](std::int64_t row) {
      return RandomState{std::bit_cast<std::uint64_t>(values[2 * row]),
                         std::bit_cast<std::uint64_t>(values[2 * row + 1])};
    };
    if (ranks_.rank < rows) return set_random_state(state_of(ranks_.rank));
    // A rank that the saved run did not have. If the ranks had separate seeds, so must this one.
    RandomState state = state_of(0);
    for (std::int64_t row = 1; row < rows; ++row) {
      if (state_of(row).seed == state.seed) continue;
      state.seed += static_cast<std::uint64_t>(ranks_.rank);
      break;
    }
    set_random_state(state);
  }

 private:
  CheckpointRanks ranks_;
};

}  // namespace

namespace detail {

std::vector<std::int64_t> Agreement::gather(std::span<const std::int64_t> values) const {
  if (ranks_.size == 1) return {values.begin(), values.end()};
  std::vector<std::int64_t> all = ranks_.gather(values);
  const std::size_t expected = values.size() * static_cast<std::size_t>(ranks_.size);
  if (all.size() != expected)
    throw ArgumentError(
        str("Checkpoint: expected ", expected, " values from ranks.gather, got ", all.size()));
  return all;
}

std::vector<std::int64_t> Agreement::gather(std::int64_t value) const {
  return gather(std::span<const std::int64_t>(&value, 1));
}

void Agreement::confirm(const char* call, const std::exception_ptr& failure) const {
  std::vector<std::int64_t> failed;
  try {
    failed = gather(failure ? 1 : 0);
  } catch (...) {
    if (failure) std::rethrow_exception(failure);  // the first reason
    throw;
  }
  if (failure) std::rethrow_exception(failure);
  if (const std::exception_ptr other = failure_elsewhere(call, failed))
    std::rethrow_exception(other);
}

std::exception_ptr failure_elsewhere(const char* call, const std::vector<std::int64_t>& values) {
  std::string list;
  for (std::size_t r = 0; r < values.size(); ++r) {
    if (values[r] != 0) list += str(list.empty() ? "" : ", ", r);
  }
  if (list.empty()) return {};
  const bool several = list.find(',') != std::string::npos;
  return std::make_exception_ptr(
      Error(str("Checkpoint: ", call, ": expected all ranks to confirm, got a failure on ",
                several ? "ranks " : "rank ", list, "; its error says why")));
}

void check_same(const char* call, const char* what, const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t v : values) list += str(list.empty() ? "" : ", ", v);
  if (std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v != values[0]; }))
    throw ArgumentError(
        str("Checkpoint: ", call, ": expected one ", what, " on all ranks, got ", list));
}

void check_same_files(const std::string& name, const std::vector<std::int64_t>& sums) {
  std::string list;
  for (std::size_t r = 0; r < sums.size(); ++r)
    if (sums[r] != sums[0]) list += str(list.empty() ? "" : ", ", r);
  if (list.empty()) return;
  throw ArgumentError(str("Checkpoint: load: expected the same ", name, " on all ranks, got other ",
                          "files than rank 0's on ",
                          list.find(',') != std::string::npos ? "ranks " : "rank ", list,
                          ": the folder must be on a file system that they share"));
}

void check_ranks(const CheckpointRanks& ranks) {
  if (ranks.size < 1 || ranks.rank < 0 || ranks.rank >= ranks.size)
    throw ArgumentError(
        str("Checkpoint: expected a rank in [0, size), got rank ", ranks.rank, " of ", ranks.size));
  if (ranks.size > 1 && !ranks.gather)
    throw ArgumentError(
        str("Checkpoint: expected ranks.gather for ", ranks.size, " ranks, got none"));
}

void check_same_ranks(const CheckpointRanks& ranks, int rank, int size) {
  if (ranks.rank != rank || ranks.size != size)
    throw ArgumentError(
        str("Checkpoint: expected the ranks of the optimizer, whose state is divided: rank ", rank,
            " of ", size, ", got rank ", ranks.rank, " of ", ranks.size,
            " (the option ranks = parallel::checkpoint_ranks(process))"));
}

std::unique_ptr<Part> make_random_part(const CheckpointRanks& ranks) {
  return std::make_unique<RandomPart>(ranks);
}

}  // namespace detail

bool Checkpoint::on_any_rank(bool value) const {
  const std::vector<std::int64_t> all = detail::Agreement(options_.ranks).gather(value ? 1 : 0);
  return std::any_of(all.begin(), all.end(), [](std::int64_t v) { return v != 0; });
}

}  // namespace braid::training
