#include "loader/position.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/data/loader.hpp>

namespace braid::data::detail {
namespace {

constexpr std::array<std::string_view, 5> kNames{"epoch", "batch", "seed", "batch_size",
                                                 "dataset_size"};

}  // namespace

StateDict numbers_state(std::span<const std::string_view> names,
                        std::span<const std::int64_t> values) {
  StateDict dict;
  for (std::size_t i = 0; i < names.size(); ++i)
    dict.set(std::string(names[i]),
             tensor(std::vector<std::int64_t>{values[i]}, {.device = Device()}));
  return dict;
}

std::vector<std::int64_t> load_numbers(const char* op, std::span<const std::string_view> names,
                                       std::span<const StateDict::value_type> dict) {
  const auto fail = [op](const std::string& expected, const std::string& got) {
    throw ArgumentError(str(op, ": load_state: expected ", expected, ", got ", got));
  };
  std::string list(names.front());
  for (std::size_t i = 1; i < names.size(); ++i)
    list += str(i + 1 == names.size() ? " and " : ", ", names[i]);
  std::vector<std::int64_t> values(names.size());
  std::vector<bool> seen(names.size());
  for (const auto& [name, tensor] : dict) {
    std::size_t i = 0;
    while (i < names.size() && names[i] != name) ++i;
    if (i == names.size()) fail(list, "'" + name + "'");
    if (seen[i]) fail(str(names[i], " once"), "it twice");
    if (!tensor.defined() || tensor.dtype() != DType::int64 || tensor.numel() != 1)
      fail(str(names[i], " to be one int64"), "another tensor");
    seen[i] = true;
    values[i] = tensor.item<std::int64_t>();
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!seen[i]) fail(std::string(names[i]), "none");
  return values;
}

void check_epoch_of(const std::string& op, std::int64_t epoch, std::int64_t batches) {
  // half of the range of int64, so that the following epochs do not overflow either
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / 2 / std::max<std::int64_t>(batches, 1);
  if (epoch < 0 || epoch > most)
    throw ArgumentError(str(op, ": expected an epoch in [0, ", most, "], got ", epoch));
}
void check_epoch(const char* call, std::int64_t epoch, std::int64_t batches) {
  check_epoch_of(str("DataLoader: ", call), epoch, batches);
}

namespace {

/// Returns the number of items in a batch of all ranks.
std::int64_t rows_of_all(const LoaderOptions& options) {
  return options.batch_size * options.sampler.ranks();
}

std::string batches_of(const LoaderOptions& options) {
  const std::int64_t ranks = options.sampler.ranks();
  return ranks == 1 ? str("batches of ", options.batch_size)
                    : str("batches of ", rows_of_all(options), " (", ranks, " ranks of ",
                          options.batch_size, ")");
}

}  // namespace

StateDict position_state(const Position& position, const LoaderOptions& options,
                         std::int64_t size) {
  const std::array<std::int64_t, 5> values{position.epoch, position.batch,
                                           std::bit_cast<std::int64_t>(*options.seed),
                                           rows_of_all(options), size};
  return numbers_state(kNames, values);
}

Position load_position(std::span<const StateDict::value_type> dict, LoaderOptions& options,
                       std::int64_t size, std::int64_t batches) {
  const auto fail = [](const std::string& expected, const std::string& got) {
    throw ArgumentError(str("DataLoader: load_state: expected ", expected, ", got ", got));
  };
  const std::vector<std::int64_t> values = load_numbers("DataLoader", kNames, dict);
  const std::int64_t epoch = values[0], batch = values[1], seed = values[2], batch_size = values[3],
                     dataset_size = values[4];
  check_epoch("load_state", epoch, batches);
  if (batch != 0) {  // at the beginning of an epoch a run may continue with other sizes
    if (batch_size != rows_of_all(options))
      fail(batches_of(options) + ", as this loader makes",
           str("a state of batches of ", batch_size));
    if (dataset_size != size)
      fail(str("a dataset of ", size, " items"), str("a state of one of ", dataset_size));
    if (batch < 0 || batch >= batches) fail(str("a batch below ", batches), std::to_string(batch));
  }
  options.seed = std::bit_cast<std::uint64_t>(seed);
  return {epoch, batch};
}

}  // namespace braid::data::detail
