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

void check_epoch(const char* call, std::int64_t epoch, std::int64_t batches) {
  // half of the range of int64, so that the following epochs do not overflow either
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / 2 / std::max<std::int64_t>(batches, 1);
  if (epoch < 0 || epoch > most)
    throw ArgumentError(
        str("DataLoader: ", call, ": expected an epoch in [0, ", most, "], got ", epoch));
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
  StateDict dict;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    dict.set(std::string(kNames[i]), zeros({1}, {.device = Device(), .dtype = DType::int64}));
  for (std::size_t i = 0; i < kNames.size(); ++i)
    dict.find(kNames[i])->data<std::int64_t>()[0] = values[i];
  return dict;
}

Position load_position(std::span<const StateDict::value_type> dict, LoaderOptions& options,
                       std::int64_t size, std::int64_t batches) {
  const auto fail = [](const std::string& expected, const std::string& got) {
    throw ArgumentError(str("DataLoader: load_state: expected ", expected, ", got ", got));
  };
  std::array<std::int64_t, 5> values{};
  std::array<bool, 5> seen{};
  for (const auto& [name, tensor] : dict) {
    std::size_t i = 0;
    while (i < kNames.size() && kNames[i] != name) ++i;
    if (i == kNames.size())
      fail("epoch, batch, seed, batch_size and dataset_size", "'" + name + "'");
    if (seen[i]) fail(str(kNames[i], " once"), "it twice");
    if (!tensor.defined() || tensor.dtype() != DType::int64 || tensor.numel() != 1)
      fail(str(kNames[i], " to be one int64"), "another tensor");
    seen[i] = true;
    values[i] = tensor.item<std::int64_t>();
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (!seen[i]) fail(str(kNames[i]), "none");
  }
  const auto [epoch, batch, seed, batch_size, dataset_size] = values;
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
