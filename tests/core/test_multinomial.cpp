// Tests of multinomial: frequencies, weights of 0, draws without replacement, invalid weights.
#include <algorithm>
#include <map>
#include <set>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor weights(const List& values, DType dtype = DType::float32) {
  return tensor(values, {.dtype = dtype});
}

std::int64_t distinct(T t) {
  const Whole v = whole(t);
  return static_cast<std::int64_t>(std::set<std::int64_t>(v.begin(), v.end()).size());
}

/// Returns Pearson's χ² of the observed counts against the expected counts of each key.
template <class K>
double chi_square(const std::map<K, double>& expected, std::map<K, double> counts) {
  double sum = 0;
  for (const auto& [key, n] : expected) sum += (counts[key] - n) * (counts[key] - n) / n;
  CHECK(counts.size() == expected.size());  // no unexpected keys
  return sum;
}

}  // namespace

TEST_CASE("multinomial: frequencies with replacement are the weights'", "[random]") {
  manual_seed(1);
  const std::int64_t n = cut(20000, 4000);
  for (const DType dtype : floating_dtypes()) {
    // Weights of 0 at the front, in the middle and at the end; the sum is not 1.
    const Tensor drawn = multinomial(weights({0, 1, 0, 4, 0.5, 2.5, 0}, dtype), n, true);
    INFO(dtype);
    CHECK((drawn.shape() == Shape{n} && drawn.dtype() == DType::int64 && drawn.device() == here()));
    std::map<std::int64_t, double> counts, expected;
    for (const std::int64_t i : whole(drawn)) counts[i] += 1;
    for (const auto& [i, w] : std::map<std::int64_t, double>{{1, 1}, {3, 4}, {4, 0.5}, {5, 2.5}})
      expected[i] = w / 8 * static_cast<double>(n);
    CHECK(chi_square(expected, counts) < 22);  // 3 degrees of freedom: p < 1e-4
  }
  manual_seed(0);
}

TEST_CASE("multinomial: rows are drawn for themselves", "[random]") {
  const std::int64_t n = cut(20000, 3000);
  const Tensor drawn = multinomial(tensor({{0.0, 1.0, 3.0}, {2.0, 0.0, 0.0}}), n, true, 3);
  REQUIRE(drawn.shape() == Shape{2, n});
  double ones = 0;
  for (const std::int64_t i : whole(drawn[0])) {
    CHECK((i == 1 || i == 2));
    ones += i == 1;
  }
  CHECK(std::fabs(ones / static_cast<double>(n) - 0.25) <
        5 * std::sqrt(0.1875 / static_cast<double>(n)));
  CHECK(whole(drawn[1]) == Whole(static_cast<std::size_t>(n), 0));
  // Rows of equal weights have independent draws. One sample per row gives a column.
  const Tensor many = multinomial(on_device::ones({50, 20}), 1, false, 4);
  CHECK(many.shape() == Shape{50, 1});
  CHECK(distinct(many) > 10);
  CHECK(multinomial(zeros({0, 3}), 2, true).shape() == Shape{0, 2});
}

TEST_CASE("multinomial: without replacement each comes once, in the order of the draws",
          "[random]") {
  manual_seed(2);
  for (const std::int64_t n : {1, 2, 5, 300}) CHECK(distinct(multinomial(rand({n}) + 0.1, n)) == n);
  // Ordered pairs out of three: first i with probability w_i / 8, then j with w_j of the remaining
  // weight. The category of weight 0 never occurs.
  const List w{1, 2, 0, 5};
  const std::int64_t trials = cut(20000, 4000);
  const Whole pairs = whole(multinomial(weights(w).expand({trials, 4}), 2));
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
  const auto drawn = [](const List& w, std::int64_t n, bool replacement = false) {
    return multinomial(weights(w, DType::float64), n, replacement, 1);
  };
  check_whole({{drawn({least, 0, least}, 2).sum(), {2}},
               {drawn({1, least, 0}, 2), {0, 1}},
               {drawn({0, most, 0}, 1), {1}},
               {drawn({0, least}, 100, true).sum(), {100}}});
  const Whole halves = whole(drawn({most, most}, 100, true));  // the sum overflows
  CHECK((std::count(halves.begin(), halves.end(), 0) > 20 &&
         std::count(halves.begin(), halves.end(), 1) > 20));
  // A long row, whose cumulative sums are computed in pieces: no element of weight 0 is drawn.
  const std::int64_t n = cut(100'000, 5'000);
  const Tensor w = where(lt(rand({n}, {.seed = 8}), 0.01), rand({n}, {.seed = 9}), 0.0);
  const List weight = list(w);
  for (const std::int64_t i : whole(multinomial(w, 200, true, 5))) {
    REQUIRE((i >= 0 && i < n));
    CHECK(weight[static_cast<std::size_t>(i)] > 0);
  }
}

TEST_CASE("multinomial: the seed decides, and no gradient is recorded", "[random]") {
  const Tensor w = rand({40}).requires_grad_();
  for (const bool replacement : {false, true}) {
    const auto draw = [&](std::optional<std::uint64_t> seed = {}) {
      return whole(multinomial(w, 20, replacement, seed));
    };
    manual_seed(9);
    const Whole first = draw(), second = draw();
    CHECK(first != second);
    manual_seed(9);
    CHECK(draw() == first);
    const Whole own = draw(9);
    CHECK(draw() == second);  // an explicit seed does not change the global stream
    CHECK(draw(9) == own);
    CHECK_FALSE(multinomial(w, 20, replacement).requires_grad());
  }
  manual_seed(0);
}

TEST_CASE("multinomial: wrong arguments are refused", "[random][errors]") {
  struct Wrong {
    List weights;
    std::int64_t samples;
    const char* text;
  };
  for (const Wrong& w : std::vector<Wrong>{
           {{1, -0.5}, 1, "weights that are not negative, got -0.5"},
           {{1, kNan, 2}, 1, "weights that are not negative, got nan"},
           {{1, kInf}, 1, "finite weights, got inf"},
           {{0, 3, 0}, 2, "at least 2 weights above 0 to draw as often without replacement, got 1"},
           {{1, 1}, 3, "at most 2 samples of as many categories without replacement, got 3"},
           {{1, 1}, 0, "samples >= 1, got 0"}})
    CHECK_THROWS_TEXT(ArgumentError, str("multinomial: expected ", w.text),
                      multinomial(weights(w.weights), w.samples));
  CHECK_THROWS_TEXT(ArgumentError,
                    "multinomial: expected a weight above 0 in each row, got a row of zeros",
                    multinomial(tensor({{1.0, 1.0}, {0.0, 0.0}}), 1));
  const std::string dims = "multinomial: expected weights of one or two dimensions, got ";
  CHECK_THROWS_TEXT(ShapeError, dims + "[]", multinomial(tensor(1.0), 1));
  CHECK_THROWS_TEXT(ShapeError, dims + "[2, 1, 3]", multinomial(rand({2, 1, 3}), 1));
  CHECK_THROWS_TEXT(ShapeError, "multinomial: expected at least one category, got [3, 0]",
                    multinomial(zeros({3, 0}), 1, true));
  CHECK_THROWS_TEXT(DTypeError, "multinomial: expected a floating point tensor, got int64",
                    multinomial(arange(3), 1));
}

}  // namespace braid::test::on_device
