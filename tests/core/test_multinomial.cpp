// multinomial: the right frequencies, nothing of weight 0, each once without replacement, wrong
// weights refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/random.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

Tensor weights(const std::vector<double>& values, DType dtype = DType::float32) {
  Tensor t = make_tensor({static_cast<std::int64_t>(values.size())}, DType::float64, Device());
  std::copy(values.begin(), values.end(), t.data<double>());
  return t.to(here(), dtype);
}

/// Pearson's χ² of how often each key came against how often it should.
template <class K>
double chi_square(const std::map<K, double>& expected, std::map<K, double> counts) {
  double sum = 0;
  for (const auto& [key, n] : expected) sum += (counts[key] - n) * (counts[key] - n) / n;
  CHECK(counts.size() == expected.size());  // nothing else came
  return sum;
}

}  // namespace

TEST_CASE("multinomial: frequencies with replacement are the weights'", "[random]") {
  manual_seed(1);
  const std::int64_t n = cut(20000, 4000);
  for (const DType dtype : floating_dtypes()) {
    // A weight of 0 in front, in the middle and at the end; the sum is not 1.
    const Tensor drawn = multinomial(weights({0, 1, 0, 4, 0.5, 2.5, 0}, dtype), n, true);
    INFO(dtype);
    CHECK((drawn.shape() == Shape{n} && drawn.dtype() == DType::int64 && drawn.device() == here()));
    std::map<std::int64_t, double> counts, expected;
    for (const std::int64_t i : drawn.to_vector<std::int64_t>()) counts[i] += 1;
    for (const auto& [i, w] : std::map<std::int64_t, double>{{1, 1}, {3, 4}, {4, 0.5}, {5, 2.5}})
      expected[i] = w / 8 * static_cast<double>(n);
    CHECK(chi_square(expected, counts) < 22);  // 3 degrees of freedom: p < 1e-4
  }
  manual_seed(0);
}

TEST_CASE("multinomial: rows are drawn for themselves", "[random]") {
  const std::int64_t n = cut(20000, 3000);
  const Tensor w = tensor({{0.0, 1.0, 3.0}, {2.0, 0.0, 0.0}}).to(here());
  const Tensor drawn = multinomial(w, n, true, 3);
  REQUIRE(drawn.shape() == Shape{2, n});
  double ones = 0;
  for (const std::int64_t i : drawn[0].to_vector<std::int64_t>()) {
    CHECK((i == 1 || i == 2));
    ones += i == 1;
  }
  CHECK(std::fabs(ones / static_cast<double>(n) - 0.25) <
        5 * std::sqrt(0.1875 / static_cast<double>(n)));
  CHECK(drawn[1].to_vector<std::int64_t>() ==
        std::vector<std::int64_t>(static_cast<std::size_t>(n), 0));
  // Rows of equal weights are not the same draws; one sample a row is a column.
  const Tensor many = multinomial(ones_like(rand({50, 20}, {.device = here()})), 1, false, 4);
  CHECK(many.shape() == Shape{50, 1});
  const std::vector<std::int64_t> column = many.to_vector<std::int64_t>();
  CHECK(std::set<std::int64_t>(column.begin(), column.end()).size() > 10);
  CHECK(multinomial(zeros({0, 3}, {.device = here()}), 2, true).shape() == Shape{0, 2});
}

TEST_CASE("multinomial: without replacement each comes once, in the order of the draws",
          "[random]") {
  manual_seed(2);
  for (const std::int64_t n : {1, 2, 5, 300}) {
    const std::vector<std::int64_t> all =
        multinomial(rand({n}, {.device = here()}) + 0.1, n).to_vector<std::int64_t>();
    CHECK(static_cast<std::int64_t>(std::set<std::int64_t>(all.begin(), all.end()).size()) == n);
  }
  // Ordered pairs of three: first i with w_i / 8, then j with w_j of what is left. The category of
  // weight 0 never comes.
  const std::vector<double> w{1, 2, 0, 5};
  const std::int64_t trials = cut(20000, 4000);
  const std::vector<std::int64_t> pairs =
      multinomial(weights(w).expand({trials, 4}), 2).to_vector<std::int64_t>();
  std::map<std::pair<std::int64_t, std::int64_t>, double> counts, expected;
  for (std::size_t i = 0; i < pairs.size(); i += 2) counts[{pairs[i], pairs[i + 1]}] += 1;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      if (i != j && w[i] * w[j] > 0)
        expected[{i, j}] = static_cast<double>(trials) * w[i] / 8 * w[j] / (8 - w[i]);
  CHECK(expected.size() == 6);
  CHECK(chi_square(expected, counts) < 26);  // 5 degrees of freedom: p < 1e-4
  manual_seed(0);
}

TEST_CASE("multinomial: weights of any size", "[random]") {
  const double most = std::numeric_limits<double>::max(),
               least = std::numeric_limits<double>::denorm_min();
  CHECK(multinomial(weights({least, 0, least}, DType::float64), 2, false, 1)
            .sum()
            .item<std::int64_t>() == 2);
  CHECK(multinomial(weights({1, least, 0}, DType::float64), 2, false, 1).to_vector<int>() ==
        std::vector<int>{0, 1});
  CHECK(multinomial(weights({0, most, 0}, DType::float64), 1, false, 1).item<int>() == 1);
  // a sum beyond all numbers
  const std::vector<int> halves =
      multinomial(weights({most, most}, DType::float64), 100, true, 1).to_vector<int>();
  CHECK((std::count(halves.begin(), halves.end(), 0) > 20 &&
         std::count(halves.begin(), halves.end(), 1) > 20));
  CHECK(multinomial(weights({0, least}, DType::float64), 100, true, 1).sum().item<int>() == 100);
  // A long row, whose running sums are made in pieces: nothing of weight 0 is drawn.
  const std::int64_t n = cut(100'000, 5'000);
  const Tensor mask = lt(rand({n}, {.device = here(), .seed = 8}), 0.01),
               w = where(mask, rand({n}, {.device = here(), .seed = 9}), 0.0);
  const std::vector<bool> may = [&] {
    std::vector<bool> list;
    for (const double x : w.to_vector<double>()) list.push_back(x > 0);
    return list;
  }();
  for (const std::int64_t i : multinomial(w, 200, true, 5).to_vector<std::int64_t>()) {
    REQUIRE((i >= 0 && i < n));
    CHECK(may[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("multinomial: the seed decides, and no gradient is recorded", "[random]") {
  const Tensor w = rand({40}, {.device = here()}).requires_grad_();
  for (const bool replacement : {false, true}) {
    manual_seed(9);
    const std::vector<std::int64_t> first =
        multinomial(w, 20, replacement).to_vector<std::int64_t>();
    const std::vector<std::int64_t> second =
        multinomial(w, 20, replacement).to_vector<std::int64_t>();
    CHECK(first != second);
    manual_seed(9);
    CHECK(multinomial(w, 20, replacement).to_vector<std::int64_t>() == first);
    const std::vector<std::int64_t> own =
        multinomial(w, 20, replacement, 9).to_vector<std::int64_t>();
    // a seed of its own moves nothing
    CHECK(multinomial(w, 20, replacement).to_vector<std::int64_t>() == second);
    CHECK(multinomial(w, 20, replacement, 9).to_vector<std::int64_t>() == own);
    CHECK_FALSE(multinomial(w, 20, replacement).requires_grad());
  }
  manual_seed(0);
}

TEST_CASE("multinomial: wrong arguments are refused", "[random][errors]") {
  const double nan = std::nan(""), inf = INFINITY;
  CHECK_THROWS_TEXT(ArgumentError, "multinomial: expected weights that are not negative, got -0.5",
                    multinomial(weights({1, -0.5}), 1));
  CHECK_THROWS_TEXT(ArgumentError, "multinomial: expected weights that are not negative, got nan",
                    multinomial(weights({1, nan, 2}), 1));
  CHECK_THROWS_TEXT(ArgumentError, "multinomial: expected finite weights, got inf",
                    multinomial(weights({1, inf}), 1));
  CHECK_THROWS_TEXT(ArgumentError,
                    "multinomial: expected a weight above 0 in each row, got a row of zeros",
                    multinomial(tensor({{1.0, 1.0}, {0.0, 0.0}}).to(here()), 1));
  CHECK_THROWS_TEXT(ArgumentError,
                    "multinomial: expected at least 2 weights above 0 to draw as often without "
                    "replacement, got 1",
                    multinomial(weights({0, 3, 0}), 2));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "multinomial: expected at most 2 samples of as many categories without replacement, got 3",
      multinomial(weights({1, 1}), 3));
  CHECK_THROWS_TEXT(ArgumentError, "multinomial: expected samples >= 1, got 0",
                    multinomial(weights({1, 1}), 0));
  CHECK_THROWS_TEXT(ShapeError, "multinomial: expected weights of one or two dimensions, got []",
                    multinomial(weights({1}).sum(), 1));
  CHECK_THROWS_TEXT(ShapeError,
                    "multinomial: expected weights of one or two dimensions, got [2, 1, 3]",
                    multinomial(rand({2, 1, 3}), 1));
  CHECK_THROWS_TEXT(ShapeError, "multinomial: expected at least one category, got [3, 0]",
                    multinomial(zeros({3, 0}), 1, true));
  CHECK_THROWS_TEXT(DTypeError, "multinomial: expected a floating point tensor, got int64",
                    multinomial(arange(3), 1));
}

}  // namespace braid::test::on_device
