#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <tuple>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/random.hpp>
#include <braid/data/labelled.hpp>
#include <braid/data/loader.hpp>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

using namespace braid;

namespace {

/// Row i is [5 i, 5 i + 1, …].
struct Rows {
  Tensor rows;
  Rows(std::int64_t width, std::int64_t length)
      : rows(make_tensor({length, width}, DType::float32, Device())) {
    std::iota(rows.data<float>(), rows.data<float>() + rows.numel(), 0.0f);
  }
  [[nodiscard]] std::int64_t size() const { return rows.size(0); }
  [[nodiscard]] Tensor get(std::int64_t i) const {
    return make_view(rows, {rows.size(1)}, {1}, i * rows.size(1));
  }
};

struct Numbers {
  std::int64_t n;
  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] std::int64_t get(std::int64_t i) const { return i; }
};

struct Pairs {
  [[nodiscard]] std::int64_t size() const { return 7; }
  [[nodiscard]] std::tuple<Tensor, int, double, bool> get(std::int64_t i) const {
    Tensor t = make_tensor({2}, DType::float64, Device());
    t.data<double>()[0] = t.data<double>()[1] = static_cast<double>(i);
    return {t, static_cast<int>(i) * 2, 0.5 * static_cast<double>(i), i % 2 == 1};
  }
};

/// Makes whole batches; counts nothing else.
struct Whole {
  [[nodiscard]] std::int64_t size() const { return 10; }
  [[nodiscard]] data::Labelled get(std::int64_t i) const {
    const std::int64_t one[] = {i};
    data::Labelled b = get_batch(one);
    return {make_view(b.image, {1}, {1}, 0), make_view(b.label, {}, {}, 0)};
  }
  [[nodiscard]] data::Labelled get_batch(std::span<const std::int64_t> indices) const {
    const auto n = static_cast<std::int64_t>(indices.size());
    data::Labelled b{make_tensor({n, 1}, DType::float32, Device()),
                     make_tensor({n}, DType::int64, Device())};
    for (std::int64_t k = 0; k < n; ++k) {
      b.label.data<std::int64_t>()[k] = indices[static_cast<std::size_t>(k)];
      b.image.data<float>()[k] = static_cast<float>(indices[static_cast<std::size_t>(k)]) / 2;
    }
    return b;
  }
};

static_assert(std::input_iterator<data::DataLoader<Rows>::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, data::DataLoader<Rows>::iterator>);
static_assert(std::ranges::input_range<data::DataLoader<Rows>>);

template <class L> std::vector<std::int64_t> epoch_of(L& loader) {
  std::vector<std::int64_t> order;
  for (Tensor batch : loader)
    order.insert(order.end(), batch.data<std::int64_t>(),
                 batch.data<std::int64_t>() + batch.numel());
  return order;
}
std::vector<std::int64_t> sorted(std::vector<std::int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}
std::vector<std::int64_t> upto(std::int64_t n) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), std::int64_t{0});
  return v;
}

}  // namespace

TEST_CASE("loader: batches of 30, 30, 30, 10 hold every row once", "[data][loader]") {
  data::DataLoader loader(Rows(5, 100), {.batch_size = 30, .shuffle = true});
  CHECK(loader.batches() == 4);
  std::vector<Shape> shapes;
  std::vector<int> seen(100, 0);
  for (Tensor batch : loader) {
    shapes.push_back(batch.shape());
    CHECK(batch.dtype() == DType::float32);
    CHECK(batch.device() == Device("cpu"));
    CHECK_FALSE(batch.requires_grad());
    for (std::int64_t r = 0; r < batch.size(0); ++r) {
      const float* row = batch.data<float>() + 5 * r;
      const auto i = static_cast<int>(row[0]) / 5;
      for (int c = 0; c < 5; ++c) CHECK(row[c] == static_cast<float>(5 * i + c));
      ++seen[static_cast<std::size_t>(i)];
    }
  }
  CHECK(shapes == std::vector<Shape>{{30, 5}, {30, 5}, {30, 5}, {10, 5}});
  CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

TEST_CASE("loader: drop_last leaves out what does not fill a batch", "[data][loader]") {
  data::DataLoader loader(Rows(5, 100), {.batch_size = 30, .drop_last = true});
  CHECK(loader.batches() == 3);
  int batches = 0;
  for (auto& batch : loader) batches += batch.size(0) == 30 ? 1 : 1000;
  CHECK(batches == 3);
  data::DataLoader none(Numbers{3}, {.batch_size = 4, .drop_last = true});
  CHECK(none.batches() == 0);
  CHECK(none.begin() == none.end());
  data::DataLoader exact(Numbers{8}, {.batch_size = 4});
  CHECK(exact.batches() == 2);
  CHECK(epoch_of(exact) == upto(8));
}

TEST_CASE("loader: in order unless told otherwise", "[data][loader]") {
  for (const std::int64_t n : {1, 2, 63, 64, 65}) {
    data::DataLoader loader(Numbers{n}, {.batch_size = 8});
    CHECK(epoch_of(loader) == upto(n));
    CHECK(epoch_of(loader) == upto(n));
  }
}

TEST_CASE("loader: shuffled by seed and epoch", "[data][loader]") {
  data::DataLoader a(Numbers{100}, {.batch_size = 7, .shuffle = true, .seed = 3});
  data::DataLoader b(Numbers{100}, {.batch_size = 10, .shuffle = true, .seed = 3});
  data::DataLoader c(Numbers{100}, {.batch_size = 7, .shuffle = true, .seed = 4});
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
  CHECK(order == std::vector<std::int64_t>{4, 5, 7, 2, 3, 8, 6, 9, 1, 0});
  CHECK(data::RandomSampler{0}.indices(0, 0).empty());
  CHECK(data::RandomSampler{0}.indices(1, 0) == upto(1));
}

TEST_CASE("loader: every order of a shuffle is as likely as the others", "[data][loader]") {
  // 24 orders of 4 items, 24,000 epochs: 1,000 each, standard deviation 31; chi squared of 23
  // degrees: 49.7 at 0.1 %.
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
  data::DataLoader a(Numbers{50}, {.batch_size = 50, .shuffle = true});
  manual_seed(0);
  data::DataLoader b(Numbers{50}, {.batch_size = 50, .shuffle = true, .seed = 17});
  data::DataLoader c(Numbers{50}, {.batch_size = 50, .shuffle = true});
  const auto order = epoch_of(a);
  CHECK(order == epoch_of(b));
  CHECK(order != epoch_of(c));
}

TEST_CASE("loader: a sampler of one's own", "[data][loader]") {
  struct Odd {
    [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const {
      std::vector<std::int64_t> v;
      for (std::int64_t i = 1; i < size; i += 2) v.push_back(i);
      if (epoch % 2 == 1) std::reverse(v.begin(), v.end());
      return v;
    }
    [[nodiscard]] std::int64_t count(std::int64_t size) const { return size / 2; }
  };
  data::DataLoader loader(Numbers{9}, {.batch_size = 3, .sampler = Odd{}});
  CHECK(loader.batches() == 2);
  CHECK(epoch_of(loader) == std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK(epoch_of(loader) == std::vector<std::int64_t>{7, 5, 3, 1});
  data::DataLoader again(Numbers{9}, loader.options());
  CHECK(epoch_of(again) == std::vector<std::int64_t>{1, 3, 5, 7});
}

TEST_CASE("loader: items of numbers and tuples become tensors", "[data][loader]") {
  data::DataLoader loader(Pairs{}, {.batch_size = 4});
  std::int64_t first = 0;
  for (auto& [tensor, integer, real, flag] : loader) {
    const std::int64_t n = std::min<std::int64_t>(4, 7 - first);
    CHECK((tensor.shape() == Shape{n, 2} && tensor.dtype() == DType::float64));
    CHECK((integer.shape() == Shape{n} && integer.dtype() == DType::int64));
    CHECK((real.shape() == Shape{n} && real.dtype() == DType::float32));
    CHECK((flag.shape() == Shape{n} && flag.dtype() == DType::bool_));
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(tensor.template data<double>()[2 * i + 1] == static_cast<double>(first + i));
      CHECK(integer.template data<std::int64_t>()[i] == 2 * (first + i));
      CHECK(real.template data<float>()[i] == 0.5f * static_cast<float>(first + i));
      CHECK(flag.template data<bool>()[i] == ((first + i) % 2 == 1));
    }
    first += n;
  }
  CHECK(first == 7);
}

TEST_CASE("loader: a dataset that makes whole batches", "[data][loader]") {
  data::DataLoader loader(Whole{}, {.batch_size = 4, .shuffle = true});
  std::vector<std::int64_t> seen;
  for (auto& [image, label] : loader) {
    REQUIRE(image.shape() == Shape{label.size(0), 1});
    for (std::int64_t i = 0; i < label.size(0); ++i) {
      seen.push_back(label.data<std::int64_t>()[i]);
      CHECK(image.data<float>()[i] == static_cast<float>(seen.back()) / 2);
    }
  }
  CHECK(sorted(seen) == upto(10));
}

TEST_CASE("loader: a batch is owned, and what is copied from it stays", "[data][loader]") {
  const Rows rows(3, 4);
  data::DataLoader loader(rows, {.batch_size = 2});
  std::vector<Tensor> kept;
  for (auto& batch : loader) {
    kept.push_back(batch);
    batch = Tensor();  // the loop's own to change
  }
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].data<float>()[0] == 0);
  CHECK(kept[1].data<float>()[0] == 6);
  kept[0].data<float>()[0] = 100;
  CHECK(rows.rows.data<float>()[0] == 0);
}

TEST_CASE("loader: an epoch under way outlives the loader, and two can be under way",
          "[data][loader]") {
  auto loader =
      std::make_unique<data::DataLoader<Numbers>>(Numbers{4}, data::LoaderOptions{.batch_size = 1});
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
  CHECK_THROWS_TEXT(ArgumentError, "DataLoader: expected a dataset with at least one item, got 0",
                    data::DataLoader(Numbers{0}));
  CHECK_THROWS_TEXT(ArgumentError, "DataLoader: expected batch_size >= 1, got 0",
                    data::DataLoader(Numbers{1}, {.batch_size = 0}));
  CHECK_THROWS_TEXT(ArgumentError, "DataLoader: expected 0 <= workers <= 256, got -1",
                    data::DataLoader(Numbers{1}, {.workers = -1}));
  CHECK_THROWS_TEXT(
      ArgumentError, "DataLoader: expected either shuffle or a sampler, got both",
      data::DataLoader(Numbers{1}, {.shuffle = true, .sampler = data::SequentialSampler{}}));
  struct Outside {
    [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t, std::int64_t) const {
      return {0, 5};
    }
    [[nodiscard]] std::int64_t count(std::int64_t) const { return 2; }
  };
  data::DataLoader outside(Numbers{5}, {.sampler = Outside{}});
  CHECK_THROWS_TEXT(IndexError, "DataLoader: expected an index in [0, 5), got 5", outside.begin());
  CHECK(outside.epoch() == 0);
  struct Short {
    [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t, std::int64_t) const {
      return {0};
    }
    [[nodiscard]] std::int64_t count(std::int64_t) const { return 2; }
  };
  data::DataLoader wrong_count(Numbers{5}, {.sampler = Short{}});
  CHECK_THROWS_TEXT(ArgumentError,
                    "DataLoader: expected 2 indices from the sampler, as its count says, got 1",
                    wrong_count.begin());
}

TEST_CASE("loader: datasets larger than any list of their indices", "[data][loader][errors]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  for (const bool shuffle : {false, true}) {
    data::DataLoader loader(Numbers{kHuge}, {.batch_size = 4, .shuffle = shuffle});
    CHECK(loader.batches() == kHuge / 4);
    CHECK_THROWS_TEXT(ArgumentError,
                      "sampler: expected a dataset of 0 to *, as many indices as a list can hold, "
                      "got 1152921504606846976",
                      loader.begin());
#if !BRAID_SANITIZED  // these end the program where memory is refused
    data::DataLoader large(Numbers{kHuge / 1024}, {.batch_size = 4, .shuffle = shuffle});
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
  struct Sparse {
    std::int64_t missing_from;
    [[nodiscard]] std::int64_t size() const { return 4; }
    [[nodiscard]] Tensor get(std::int64_t i) const {
      return i < missing_from ? make_tensor({2}, DType::float32, Device()) : Tensor();
    }
  };
  data::DataLoader nothing(Sparse{0}, {.batch_size = 4});
  for (auto& batch : nothing) CHECK_FALSE(batch.defined());
  data::DataLoader some(Sparse{3}, {.batch_size = 4});
  try {
    static_cast<void>(some.begin());
    FAIL("nothing was thrown");
  } catch (const WorkerError& e) {
    CHECK(std::string(e.what()).find("ShapeError: collate: expected items of one structure, got "
                                     "one in item 3 where the root is undefined") !=
          std::string::npos);
  }
}
