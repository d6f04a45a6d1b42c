#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>

#include "items.hpp"
#include "nn/refused.hpp"
#include "support/sanitized.hpp"
#include "support/tensors.hpp"

using namespace braid;
using namespace braid::test;

namespace {

/// A dataset with get_batch, which makes a whole batch.
struct Whole {
  [[nodiscard]] std::int64_t size() const { return 10; }
  [[nodiscard]] data::Labelled get(std::int64_t i) const {
    return {full({1}, 0.5 * static_cast<double>(i)),
            full({}, static_cast<double>(i), {.dtype = DType::int64})};
  }
  [[nodiscard]] data::Labelled get_batch(std::span<const std::int64_t> indices) const {
    const Tensor label = tensor(Ids(indices.begin(), indices.end()));
    return {label.to(DType::float32).unsqueeze(1) / 2.0, label};
  }
};

static_assert(std::input_iterator<data::DataLoader<Integers>::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, data::DataLoader<Integers>::iterator>);
static_assert(std::ranges::input_range<data::DataLoader<Integers>>);

/// A sampler that returns `list`, and `claimed` as its count.
struct Fixed {
  Ids list;
  std::int64_t claimed;
  [[nodiscard]] Ids indices(std::int64_t, std::int64_t) const { return list; }
  [[nodiscard]] std::int64_t count(std::int64_t) const { return claimed; }
};

}  // namespace

TEST_CASE("loader: batches of 30, 30, 30, 10 hold every row once", "[data][loader]") {
  const Tensor rows = arange(500, {.dtype = DType::float32}).reshape({100, 5});
  data::DataLoader loader(Made{100, [&](std::int64_t i) { return rows[i]; }},
                          {.batch_size = 30, .shuffle = true});
  CHECK(loader.batches() == 4);
  std::vector<Shape> shapes;
  Ids seen;
  for (const Tensor& batch : loader) {
    shapes.push_back(batch.shape());
    CHECK(batch.dtype() == DType::float32);
    CHECK(batch.device() == Device("cpu"));
    CHECK_FALSE(batch.requires_grad());
    for (const float first : batch.select(1, 0).to_vector<float>())
      seen.push_back(static_cast<std::int64_t>(first) / 5);
    CHECK(equal(batch, index_select(rows, 0, tensor(Ids(seen.end() - batch.size(0), seen.end())))));
  }
  CHECK(shapes == std::vector<Shape>{{30, 5}, {30, 5}, {30, 5}, {10, 5}});
  CHECK(sorted(seen) == upto(100));
}

TEST_CASE("loader: drop_last leaves out what does not fill a batch", "[data][loader]") {
  data::DataLoader loader(Integers{100}, {.batch_size = 30, .drop_last = true});
  CHECK(loader.batches() == 3);
  int batches = 0;
  for (auto& batch : loader) batches += batch.size(0) == 30 ? 1 : 1000;
  CHECK(batches == 3);
  data::DataLoader none(Integers{3}, {.batch_size = 4, .drop_last = true});
  CHECK(none.batches() == 0);
  CHECK(none.begin() == none.end());
  data::DataLoader exact(Integers{8}, {.batch_size = 4});
  CHECK(exact.batches() == 2);
  CHECK(epoch_of(exact) == upto(8));
}

TEST_CASE("loader: in order unless told otherwise", "[data][loader]") {
  for (const std::int64_t n : {1, 2, 63, 64, 65}) {
    data::DataLoader loader(Integers{n}, {.batch_size = 8});
    for (int epoch = 0; epoch < 2; ++epoch) CHECK(epoch_of(loader) == upto(n));
  }
}

TEST_CASE("loader: shuffled by seed and epoch", "[data][loader]") {
  data::DataLoader a(Integers{100}, {.batch_size = 7, .shuffle = true, .seed = 3});
  data::DataLoader b(Integers{100}, {.batch_size = 10, .shuffle = true, .seed = 3});
  data::DataLoader c(Integers{100}, {.batch_size = 7, .shuffle = true, .seed = 4});
  const auto first = epoch_of(a), second = epoch_of(a);
  CHECK(sorted(first) == upto(100));
  CHECK(sorted(second) == upto(100));
  CHECK(first != upto(100));
  CHECK(first != second);
  CHECK(epoch_of(b) == first);  // the batch size does not matter
  CHECK(epoch_of(c) != first);
  CHECK(a.epoch() == 2);
  a.set_epoch(0);
  CHECK(epoch_of(a) == first);
  CHECK(epoch_of(a) == second);
  a.set_epoch(1);
  CHECK(epoch_of(a) == second);
}

TEST_CASE("loader: the order of a shuffle is the same on every machine and in every version",
          "[data][loader]") {
  const auto order = data::RandomSampler{0}.indices(10, 0);
  CHECK(sorted(order) == upto(10));
  CHECK(order == Ids{4, 5, 7, 2, 3, 8, 6, 9, 1, 0});
  CHECK(data::RandomSampler{0}.indices(0, 0).empty());
  CHECK(data::RandomSampler{0}.indices(1, 0) == upto(1));
}

TEST_CASE("loader: every order of a shuffle is as likely as the others", "[data][loader]") {
  // 4 items have 24 orders. In 24,000 epochs each order is expected 1,000 times, with a standard
  // deviation of 31. Chi squared with 23 degrees of freedom exceeds 49.7 with probability 0.1 %.
  std::vector<int> counts(256, 0);
  for (int epoch = 0; epoch < 24'000; ++epoch) {
    const auto order = data::RandomSampler{1}.indices(4, epoch);
    ++counts[static_cast<std::size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3])];
  }
  double chi = 0;
  int orders = 0;
  for (const int n : counts)
    if (n != 0) chi += (n - 1000.0) * (n - 1000.0) / 1000.0, ++orders;
  CHECK(orders == 24);
  CHECK(chi < 49.7);
}

TEST_CASE("loader: the default seed is manual_seed's at construction", "[data][loader]") {
  manual_seed(17);
  data::DataLoader a(Integers{50}, {.batch_size = 50, .shuffle = true});
  manual_seed(0);
  data::DataLoader b(Integers{50}, {.batch_size = 50, .shuffle = true, .seed = 17});
  data::DataLoader c(Integers{50}, {.batch_size = 50, .shuffle = true});
  const auto order = epoch_of(a);
  CHECK(order == epoch_of(b));
  CHECK(order != epoch_of(c));
}

TEST_CASE("loader: a custom sampler", "[data][loader]") {
  struct Odd {
    [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const {
      std::vector<std::int64_t> v;
      for (std::int64_t i = 1; i < size; i += 2) v.push_back(i);
      if (epoch % 2 == 1) std::reverse(v.begin(), v.end());
      return v;
    }
    [[nodiscard]] std::int64_t count(std::int64_t size) const { return size / 2; }
  };
  data::DataLoader loader(Integers{9}, {.batch_size = 3, .sampler = Odd{}});
  CHECK(loader.batches() == 2);
  CHECK(epoch_of(loader) == Ids{1, 3, 5, 7});
  CHECK(epoch_of(loader) == Ids{7, 5, 3, 1});
  data::DataLoader again(Integers{9}, loader.options());
  CHECK(epoch_of(again) == Ids{1, 3, 5, 7});
}

TEST_CASE("loader: items of numbers and tuples become tensors", "[data][loader]") {
  const auto item = [](std::int64_t i) {
    return std::tuple{full({2}, static_cast<double>(i), {.dtype = DType::float64}),
                      static_cast<int>(i) * 2, 0.5 * static_cast<double>(i), i % 2 == 1};
  };
  data::DataLoader loader(Made{7, item}, {.batch_size = 4});
  std::int64_t first = 0;
  for (auto& [numbers, integer, real, flag] : loader) {
    const std::int64_t n = std::min<std::int64_t>(4, 7 - first);
    const Tensor i = arange(first, first + n), x = i.to(DType::float64);
    CHECK_SAME_BITS(numbers, stack({x, x}, 1));
    CHECK_SAME_BITS(integer, i * 2);
    CHECK_SAME_BITS(real, (x / 2.0).to(DType::float32));
    CHECK_SAME_BITS(flag, eq(remainder(i, 2), 1));
    first += n;
  }
  CHECK(first == 7);
}

TEST_CASE("loader: a dataset that makes whole batches", "[data][loader]") {
  data::DataLoader loader(Whole{}, {.batch_size = 4, .shuffle = true});
  Ids seen;
  for (auto& [image, label] : loader) {
    CHECK_SAME_BITS(image, label.to(DType::float32).unsqueeze(1) / 2.0);
    for (const std::int64_t i : ids(label)) seen.push_back(i);
  }
  CHECK(sorted(seen) == upto(10));
}

TEST_CASE("loader: a batch is owned, and what is copied from it stays", "[data][loader]") {
  const Tensor rows = arange(12).reshape({4, 3});
  data::DataLoader loader(Made{4, [&](std::int64_t i) { return rows[i]; }}, {.batch_size = 2});
  std::vector<Tensor> kept;
  for (auto& batch : loader) {
    kept.push_back(batch);
    batch = Tensor();  // the loop owns the batch and may change it
  }
  REQUIRE(kept.size() == 2);
  CHECK(ids(kept[0]) == upto(6));
  CHECK(ids(kept[1])[0] == 6);
  kept[0].fill_(100);
  CHECK(ids(rows) == upto(12));
}

TEST_CASE("loader: an epoch under way outlives the loader, and two can be under way",
          "[data][loader]") {
  auto loader = std::make_unique<data::DataLoader<Integers>>(Integers{4},
                                                             data::LoaderOptions{.batch_size = 1});
  auto a = loader->begin();
  ++a;
  auto b = loader->begin();
  data::DataLoader moved = std::move(*loader);
  loader.reset();
  CHECK(*(*a).data<std::int64_t>() == 1);
  CHECK(*b->data<std::int64_t>() == 0);
  ++a;
  ++b;
  CHECK(*(*a).data<std::int64_t>() == 2);
  CHECK(*b->data<std::int64_t>() == 1);
  CHECK(moved.epoch() == 2);
}

TEST_CASE("loader: wrong calls", "[data][loader][errors]") {
  const auto make = [](const data::LoaderOptions& o) { data::DataLoader(Integers{1}, o); };
  refuses<ArgumentError>("DataLoader: expected ")({
      {"a dataset with at least one item, got 0", [] { data::DataLoader<Integers>(Integers{0}); }},
      {"batch_size >= 1, got 0", [&] { make({.batch_size = 0}); }},
      {"0 <= workers <= 256, got -1", [&] { make({.workers = -1}); }},
      {"either shuffle or a sampler, got both",
       [&] { make({.shuffle = true, .sampler = data::SequentialSampler{}}); }},
  });
  data::DataLoader five(Integers{5}, {.batch_size = 2});
  refuses<ArgumentError>("DataLoader: set_epoch: expected an epoch in [0, ")({
      {"1537228672809129301], got 9223372036854775807",
       [&] { five.set_epoch(std::numeric_limits<std::int64_t>::max()); }},
      {"1537228672809129301], got -1", [&] { five.set_epoch(-1); }},
  });
  CHECK(five.epoch() == 0);
  five.set_epoch(1537228672809129301);
  (void)five.begin();
  CHECK(five.steps() > 0);
  data::DataLoader outside(Integers{5}, {.sampler = Fixed{{0, 5}, 2}});
  CHECK_THROWS_TEXT(IndexError, "DataLoader: expected an index in [0, 5), got 5", outside.begin());
  CHECK(outside.epoch() == 0);
  data::DataLoader wrong_count(Integers{5}, {.sampler = Fixed{{0}, 2}});
  CHECK_THROWS_TEXT(ArgumentError,
                    "DataLoader: expected 2 indices from the sampler, as its count says, got 1",
                    wrong_count.begin());
}

TEST_CASE("loader: datasets larger than any list of their indices", "[data][loader][errors]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  for (const bool shuffle : {false, true}) {
    data::DataLoader loader(Integers{kHuge}, {.batch_size = 4, .shuffle = shuffle});
    CHECK(loader.batches() == kHuge / 4);
    CHECK_THROWS_TEXT(ArgumentError,
                      "sampler: expected a dataset of 0 to *, as many indices as a list can hold, "
                      "got 1152921504606846976",
                      loader.begin());
#if !BRAID_SANITIZED  // a sanitizer ends the process if such an allocation fails
    data::DataLoader large(Integers{kHuge / 1024}, {.batch_size = 4, .shuffle = shuffle});
    CHECK_THROWS_TEXT(
        OutOfMemoryError,
        "expected 9007199254740992 free bytes, *(the order of a dataset of 1125899906842624 items)",
        large.begin());
#endif
  }
  CHECK_THROWS_TEXT(ArgumentError, "sampler: expected a dataset of 0 to *, got -1",
                    data::SequentialSampler{}.indices(-1, 0));
}

TEST_CASE("loader: items that are undefined tensors", "[data][loader]") {
  const auto until = [](std::int64_t n) {
    return Made{4, [n](std::int64_t i) { return i < n ? Tensor(zeros({2})) : Tensor(); }};
  };
  data::DataLoader nothing(until(0), {.batch_size = 4}), some(until(3), {.batch_size = 4});
  CHECK_THROWS_TEXT(WorkerError,
                    "ArgumentError: collate: expected items with a defined tensor, got an item 0 "
                    "that has none",
                    nothing.begin());
  CHECK_THROWS_TEXT(WorkerError,
                    "ShapeError: collate: expected items of one structure, got one in item 3 where "
                    "the root is undefined",
                    some.begin());
}
