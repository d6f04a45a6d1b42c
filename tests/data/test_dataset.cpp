#include <set>

#include "items.hpp"
#include "nn/refused.hpp"

using namespace braid;
using namespace braid::test;

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
Ids all_of(const auto& subset) {
  Ids list;
  for (std::int64_t i = 0; i < subset.size(); ++i) list.push_back(subset.get(i));
  return list;
}

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

TEST_CASE("split: the first n, and the rest; of a split too", "[data]") {
  const auto parts = data::split(Tens{10}, 7);
  const auto &a = parts.first, &b = parts.second;
  CHECK(all_of(a) == Ids{0, 10, 20, 30, 40, 50, 60});
  CHECK(all_of(b) == Ids{70, 80, 90});
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 7), got 7", a.get(7));
  CHECK_THROWS_TEXT(IndexError, "Subset: expected an index in [0, 3), got -1", b.get(-1));
  const auto [first, second] = data::split(b, 1);
  CHECK(all_of(first) == Ids{70});
  CHECK(all_of(second) == Ids{80, 90});
  const auto [all, nothing] = data::split(Tens{10}, 11);
  CHECK((all.size() == 10 && nothing.size() == 0));
  const auto [none, rest] = data::split(Tens{10}, 0);
  CHECK(none.size() == 0);
  CHECK(rest.size() == 10);
  CHECK(data::split(Tens{0}, 5).first.size() == 0);
  CHECK_THROWS_TEXT(ArgumentError, "split: expected n >= 0, got -1", data::split(Tens{10}, -1));
}

TEST_CASE("split: shuffled by a seed, nothing lost, nothing twice", "[data]") {
  const auto [a, b] = data::split(Integers{100}, 90, 5);
  const Ids first = all_of(a), rest = all_of(b);
  CHECK((first.size() == 90 && rest.size() == 10));
  std::set<std::int64_t> both(first.begin(), first.end());
  both.insert(rest.begin(), rest.end());
  CHECK(both.size() == 100);
  CHECK(first != all_of(data::split(Integers{100}, 90).first));
  CHECK(first == all_of(data::split(Integers{100}, 90, 5).first));
  CHECK(first != all_of(data::split(Integers{100}, 90, 6).first));
  CHECK(all_of(data::split(Integers{3}, 9, 1).first).size() == 3);
  CHECK_THROWS_AS(data::split(Integers{3}, -1, 1), ArgumentError);
}

TEST_CASE("subset: items by index, in order, more than once", "[data]") {
  const auto s = data::subset(Tens{10}, {9, 0, 9});
  CHECK(all_of(s) == Ids{90, 0, 90});
  CHECK(s.original(0) == 9);
  const auto tens = std::make_shared<const Tens>(Tens{10});
  refuses<IndexError>("Subset")({
      {": expected an index in [0, 10), got 10", [] { return data::subset(Tens{10}, {0, 10}); }},
      {": expected an index in [0, 10), got -1", [] { return data::subset(Tens{10}, {-1}); }},
      {"*got 11", [&] { data::Subset<Tens>(tens, 11, 0); }},
      {"", [&] { data::Subset<Tens>(tens, 5, 6); }},
      {"", [&] { data::Subset<Tens>(tens, 5, -1); }},
  });
}
