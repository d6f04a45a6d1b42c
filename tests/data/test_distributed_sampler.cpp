// DistributedSampler: which items each rank gets.
#include <algorithm>
#include <vector>

#include <braid/braid.hpp>

#include "items.hpp"
#include "support/errors.hpp"

namespace braid::test {

using data::DistributedSampler;
using data::DistributedSamplerOptions;
using List = std::vector<std::int64_t>;

TEST_CASE("distributed: D17 the sampler pads by wrapping, or drops the tail",
          "[data][distributed]") {
  const List padded[] = {{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}};
  const List dropped[] = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  for (int rank = 0; rank < 4; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    CHECK(DistributedSampler(rank, 4).indices(10, 0) == padded[r]);
    CHECK(DistributedSampler(rank, 4).count(10) == 3);
    CHECK(DistributedSampler(rank, 4, {.drop_last = true}).indices(10, 0) == dropped[r]);
  }
  // fewer items than ranks: wrapped more than once
  CHECK(DistributedSampler(3, 4).indices(2, 0) == List{1});
  CHECK(DistributedSampler(0, 1).indices(3, 5) == List{0, 1, 2});
  CHECK(DistributedSampler(1, 2).indices(0, 0).empty());
  for (const int rank : {-1, 4, 5})
    CHECK_THROWS_TEXT(ArgumentError, "DistributedSampler: Invalid rank *interval [0, 3]",
                      DistributedSampler(rank, 4));
  CHECK_THROWS_TEXT(ArgumentError, "DistributedSampler: expected at least one rank, got 0",
                    DistributedSampler(0, 0));
}

TEST_CASE("distributed: D17 shuffled with the epoch, which the loader sets",
          "[data][distributed]") {
  const auto dealt = [](std::int64_t epoch, DistributedSamplerOptions options) {
    List all;
    for (int rank = 0; rank < 3; ++rank)
      for (const std::int64_t i : DistributedSampler(rank, 3, options).indices(30, epoch))
        all.push_back(i);
    return all;
  };
  const List first = dealt(0, {.shuffle = true}), second = dealt(1, {.shuffle = true});
  CHECK(first != second);
  CHECK(first == dealt(0, {.shuffle = true}));
  CHECK(first != dealt(0, {.shuffle = true, .seed = 1}));
  List sorted = first;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == data::SequentialSampler{}.indices(30, 0));  // each item once
  data::DataLoader loader(
      Integers{30}, {.batch_size = 5, .sampler = DistributedSampler(1, 3, {.shuffle = true})});
  CHECK(loader.batches() == 2);
  for (const std::int64_t epoch : {4, 0}) {
    loader.set_epoch(epoch);
    List got;
    for (const auto& batch : loader)
      for (const std::int64_t i : batch.template to_vector<std::int64_t>()) got.push_back(i);
    CHECK(got == DistributedSampler(1, 3, {.shuffle = true}).indices(30, epoch));
  }
}

TEST_CASE("distributed: D17 consecutive blocks are the batches of one process",
          "[data][distributed]") {
  // 52 items in global batches of 24: two whole ones and one of 4
  for (const bool shuffle : {false, true})
    for (const std::int64_t items : {48, 52, 71}) {
      data::DataLoader one(Integers{items}, {.batch_size = 24,
                                             .sampler = DistributedSampler(
                                                 0, 1, {.shuffle = shuffle, .consecutive = true})});
      for (const int size : {2, 3, 4}) {
        std::vector<List> batches(static_cast<std::size_t>(one.batches()));
        for (int rank = 0; rank < size; ++rank) {
          data::DataLoader loader(Integers{items},
                                  {.batch_size = 24 / size,
                                   .sampler = DistributedSampler(
                                       rank, size, {.shuffle = shuffle, .consecutive = true})});
          CHECK(loader.batches() == one.batches());
          std::size_t at = 0;
          for (const auto& batch : loader) {
            for (const std::int64_t i : batch.template to_vector<std::int64_t>())
              batches.at(at).push_back(i);
            ++at;
          }
        }
        std::size_t at = 0;
        one.set_epoch(0);
        for (const auto& batch : one)
          CHECK(batches.at(at++) == batch.template to_vector<std::int64_t>());
      }
    }
  const DistributedSampler tail(0, 3, {.consecutive = true}),
      dropped(0, 3, {.drop_last = true, .consecutive = true});
  CHECK_THROWS_TEXT(ArgumentError, "*an item for each of 3 ranks, got 2 (14 items*drop_last*",
                    (void)tail.count(14, 4));
  CHECK(dropped.count(14, 4) == 4);
  CHECK(dropped.indices(14, 0, 4) == List{0, 1, 2, 3});
}

}  // namespace braid::test
