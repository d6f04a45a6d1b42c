#include <braid/core/error.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/labelled.hpp>
#include <braid/data/mnist.hpp>
#include <braid/data/synthetic.hpp>

#include "support/catch.hpp"
#include "support/errors.hpp"

using namespace braid;

namespace {

/// Item i is the number 10 i.
struct Tens {
  std::int64_t n;
  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] std::int64_t get(std::int64_t i) const { return 10 * i; }
};
struct NoGet {
  [[nodiscard]] std::int64_t size() const { return 0; }
};

static_assert(data::Dataset<Tens>);
static_assert(!data::Dataset<NoGet>);
static_assert(!data::BatchedDataset<Tens>);
static_assert(std::same_as<data::Batch<Tens>, Tensor>);
static_assert(data::BatchedDataset<data::Mnist>);
static_assert(data::BatchedDataset<data::Subset<data::Mnist>>);
static_assert(!data::BatchedDataset<data::Subset<Tens>>);
static_assert(data::Dataset<data::SyntheticDigits>);
static_assert(std::same_as<data::Batch<data::SyntheticDigits>, data::Labelled>);

}  // namespace

TEST_CASE("split: the first n, and the rest", "[data]") {
  const auto parts = data::split(Tens{10}, 7);
  const auto &a = parts.first, &b = parts.second;
  CHECK((a.size() == 7 && b.size() == 3));
  CHECK((a.get(0) == 0 && a.get(6) == 60 && b.get(0) == 70 && b.get(2) == 90));
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 7), got 7", a.get(7));
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 3), got -1", b.get(-1));
}

TEST_CASE("split: n beyond the ends", "[data]") {
  auto [all, nothing] = data::split(Tens{10}, 11);
  CHECK((all.size() == 10 && nothing.size() == 0));
  auto [none, rest] = data::split(Tens{10}, 0);
  CHECK((none.size() == 0 && rest.size() == 10));
  CHECK(data::split(Tens{0}, 5).first.size() == 0);
  CHECK_THROWS_TEXT(ArgumentError, "split: expected n >= 0, got -1", data::split(Tens{10}, -1));
}

TEST_CASE("split: of a split", "[data]") {
  auto [first, second] = data::split(data::split(Tens{10}, 8).second, 1);
  CHECK((first.size() == 1 && first.get(0) == 80));
  CHECK((second.size() == 1 && second.get(0) == 90));
}

TEST_CASE("subset: items by index, in order, more than once", "[data]") {
  const auto s = data::subset(Tens{10}, {9, 0, 9});
  CHECK(s.size() == 3);
  CHECK((s.get(0) == 90 && s.get(1) == 0 && s.get(2) == 90));
  CHECK(s.original(0) == 9);
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 10), got 10",
                    data::subset(Tens{10}, {0, 10}));
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 10), got -1",
                    data::subset(Tens{10}, {-1}));
  CHECK_THROWS_TEXT(IndexError, "got 11",
                    data::Subset<Tens>(std::make_shared<const Tens>(Tens{10}), 11, 0));
  CHECK_THROWS_TEXT(IndexError, "Subset",
                    data::Subset<Tens>(std::make_shared<const Tens>(Tens{10}), 5, 6));
  CHECK_THROWS_TEXT(IndexError, "Subset",
                    data::Subset<Tens>(std::make_shared<const Tens>(Tens{10}), 5, -1));
}
