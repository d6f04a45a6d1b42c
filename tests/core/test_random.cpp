// Tests of the random factories: moments, seeds, streams, and the same numbers on every device and
// with any number of threads.
#include <algorithm>
#include <set>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};

Moments moments(const List& v) {
  Moments m;
  const double n = static_cast<double>(v.size());
  for (const double x : v) m.mean += x / n;
  for (const double x : v) {
    const double d = x - m.mean;
    m.variance += d * d / n;
    m.skew += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skew /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

/// Returns Pearson's χ² of counts that should be equal.
double chi_square(const List& counts) {
  double total = 0, sum = 0;
  for (const double c : counts) total += c;
  const double expected = total / static_cast<double>(counts.size());
  for (const double c : counts) sum += (c - expected) * (c - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("random: normal numbers are normal", "[random]") {
  for (const DType t : {DType::float32, DType::float64, DType::bfloat16}) {
    manual_seed(3);
    const List v = list(randn({400, 500}, {.dtype = t}));
    const Moments m = moments(v);
    INFO(t);
    CHECK(std::fabs(m.mean) < 5 / std::sqrt(200000.0));
    CHECK(std::fabs(m.variance - 1) <
          5 * std::sqrt(2 / 200000.0) + (t == DType::bfloat16 ? 2e-3 : 0));
    CHECK(std::fabs(m.skew) < 5 * std::sqrt(6 / 200000.0));
    CHECK(std::fabs(m.kurtosis - 3) <
          5 * std::sqrt(24 / 200000.0) + (t == DType::bfloat16 ? 2e-2 : 0));
    // The distribution in 20 equally likely bins; elements at distance 1 and 2 are uncorrelated.
    List bins(20, 0);
    double related1 = 0, related2 = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double p = 0.5 * std::erfc(-v[i] / std::sqrt(2.0));
      bins[std::min<std::size_t>(19, static_cast<std::size_t>(p * 20))] += 1;
      if (i >= 2) {
        related1 += v[i] * v[i - 1];
        related2 += v[i] * v[i - 2];
      }
    }
    if (t != DType::bfloat16) CHECK(chi_square(bins) < 60);  // 19 degrees of freedom: p < 1e-5
    CHECK(std::fabs(related1) < 5 * std::sqrt(200000.0));
    CHECK(std::fabs(related2) < 5 * std::sqrt(200000.0));
    double largest = 0;
    for (const double x : v) largest = std::max(largest, std::fabs(x));
    CHECK(largest > 4);
    CHECK(largest < 7);
  }
}

TEST_CASE("random: uniform numbers are uniform in [0, 1)", "[random]") {
  for (const DType t : floating_dtypes()) {
    manual_seed(4);
    const List v = list(rand({200000}, {.dtype = t}));
    List bins(64, 0);
    bool inside = true;
    for (const double x : v) {
      inside = inside && x >= 0 && x < 1;
      bins[std::min<std::size_t>(63, static_cast<std::size_t>(std::max(x, 0.0) * 64))] += 1;
    }
    INFO(t);
    CHECK(inside);
    // 63 degrees of freedom
    if (t != DType::bfloat16 && t != DType::float16) CHECK(chi_square(bins) < 125);
    CHECK(std::fabs(moments(v).mean - 0.5) <
          5 * std::sqrt(1 / 12.0 / 200000.0) + (size_of(t) == 2 ? 2e-3 : 0));
  }
  // float64 numbers have more than the 24 bits of a float32.
  int fine = 0;
  for (const double x : list(rand({1000}, {.dtype = DType::float64, .seed = 1})))
    fine += x != static_cast<double>(static_cast<float>(x));
  CHECK(fine > 900);
}

TEST_CASE("random: uniform in a range", "[random]") {
  for (const DType t : floating_dtypes()) {
    const List v = list(uniform({50000}, -3, 5, {.dtype = t, .seed = 9}));
    INFO(t);
    bool inside = true;
    for (const double x : v) inside = inside && x >= -3 && x < 5;
    CHECK(inside);
    CHECK(moments(v).mean == Approx(1).margin(0.1));
    CHECK(moments(v).variance == Approx(64.0 / 12).epsilon(0.05));
  }
}

TEST_CASE("random: integers are uniform in [low, high)", "[random]") {
  const Whole v = whole(randint(-3, 7, {100000}, {.seed = 2}));
  List counts(10, 0);
  bool inside = true;
  for (const std::int64_t x : v) {
    inside = inside && x >= -3 && x < 7;
    if (inside) counts[static_cast<std::size_t>(x + 3)] += 1;
  }
  CHECK(inside);
  CHECK(chi_square(counts) < 45);  // 9 degrees of freedom
  CHECK(randint(0, 5, {3}).dtype() == DType::int64);
  for (const DType t : {DType::uint8, DType::int32, DType::float32}) {
    const Tensor x = randint(0, 5, {100}, {.dtype = t, .seed = 2});
    CHECK(x.dtype() == t);
    CHECK(whole(x) == whole(randint(0, 5, {100}, {.seed = 2})));
  }
  CHECK(whole(randint(4, 5, {10})) == Whole(10, 4));
  std::set<bool> signs;
  for (const std::int64_t x : whole(randint(kMin, kMax, {100}))) signs.insert(x < 0);
  CHECK(signs.size() == 2);
  for (const std::int64_t x : whole(randint(kMax - 2, kMax, {50}))) CHECK(x >= kMax - 2);
}

TEST_CASE("random: permutations hold every number once", "[random]") {
  for (const std::int64_t n : {0, 1, 2, 10, 1000}) {
    const Whole v = whole(randperm(n, {.seed = 5}));
    std::set<std::int64_t> distinct(v.begin(), v.end());
    CHECK(static_cast<std::int64_t>(distinct.size()) == n);
    if (n > 0) CHECK((*distinct.begin() == 0 && *distinct.rbegin() == n - 1));
  }
  CHECK(randperm(3).dtype() == DType::int64);
  // Every permutation of 3 is equally likely.
  List counts(27, 0);
  manual_seed(6);
  for (int i = 0; i < 6000; ++i) {
    const Whole v = whole(randperm(3));
    counts[static_cast<std::size_t>(v[0] * 9 + v[1] * 3 + v[2])] += 1;
  }
  List orders;
  for (const double c : counts)
    if (c > 0) orders.push_back(c);
  CHECK(orders.size() == 6);
  CHECK(chi_square(orders) < 35);  // 5 degrees of freedom
}

TEST_CASE("random: the same bits on every device and with any number of threads", "[random]") {
  const KeepThreads keep;
  for (const std::int64_t n :
       std::vector<std::int64_t>{1,  2,  3,  4,  5,  7,   8,   9,    15,   16,
                                 17, 31, 33, 64, 65, 127, 129, 1000, 1025, cut(300007, 20011)})
    for (const DType t : floating_dtypes()) {
      set_num_threads(1);
      const FactoryOptions o{.device = Device("cpu"), .dtype = t, .seed = 7};
      const Tensor normal = braid::randn({n}, o), flat = braid::rand({n}, o),
                   integers = braid::randint(0, 1000003, {n}, {.seed = 7});
      for (const Device device : test_devices())
        for (const int threads : thread_counts({1, 2, 3})) {
          set_num_threads(threads);
          const FactoryOptions p{.device = device, .dtype = t, .seed = 7};
          INFO(t << " of " << n << " on " << device << ", threads " << threads);
          CHECK_SAME_BITS(braid::randn({n}, p), normal);
          CHECK_SAME_BITS(braid::rand({n}, p), flat);
          CHECK_SAME_BITS(randint(0, 1000003, {n}, {.device = device, .seed = 7}), integers);
        }
      // Element i depends only on i: a shorter tensor is a prefix of a longer one.
      const FactoryOptions p{.device = here(), .dtype = t, .seed = 7};
      CHECK_SAME_BITS(braid::randn({n + 13}, p).slice(0, 0, n), normal);
      CHECK_SAME_BITS(braid::rand({n, 2}, p).flatten().slice(0, 0, n), flat);
    }
}

TEST_CASE("random: a seed decides everything", "[random]") {
  manual_seed(42);
  CHECK(initial_seed() == 42);
  const Tensor a = randn({100}), b = randn({100}), c = randint(0, 100, {50}), d = randperm(20);
  CHECK(same_bits(a, b) != "");  // each call uses a new stream
  manual_seed(42);
  CHECK_SAME_BITS(randn({100}), a);
  CHECK_SAME_BITS(randn({100}), b);
  CHECK_SAME_BITS(randint(0, 100, {50}), c);
  CHECK_SAME_BITS(randperm(20), d);
  manual_seed(43);
  CHECK(same_bits(randn({100}), a) != "");
  // An explicit seed neither advances the global stream nor depends on it.
  manual_seed(42);
  const Tensor own = randn({100}, {.seed = 5});
  CHECK_SAME_BITS(randn({100}), a);
  CHECK_SAME_BITS(randn({100}, {.seed = 5}), own);
  CHECK(same_bits(randn({100}, {.seed = 6}), own) != "");
  const std::uint64_t stream = next_random_stream();
  CHECK(next_random_stream() == stream + 1);
  manual_seed(0);
}

TEST_CASE("random: streams and seeds do not repeat each other", "[random]") {
  // The first elements of 300 streams and of 303 seeds are all distinct.
  manual_seed(0);
  std::set<double> seen;
  const auto draw = [&](std::optional<std::uint64_t> seed) {
    seen.insert(rand({1}, {.dtype = DType::float64, .seed = seed}).item<double>());
  };
  for (int i = 0; i < 300; ++i) draw({});
  for (std::uint64_t s = 1; s <= 300; ++s) draw(s);
  for (const std::uint64_t s : {std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    draw(s);
  CHECK(seen.size() == 603);
  manual_seed(0);
}

TEST_CASE("random: options hold, wrong arguments are refused", "[random][errors]") {
  CHECK(randn({2, 3}, {.requires_grad = true}).requires_grad());
  CHECK(randn({2}, {.device = there()}).device() == there());
  CHECK(randn({}).shape() == Shape{});
  CHECK(randn({0, 3}).numel() == 0);
  for (const DType t : {DType::bool_, DType::uint8, DType::int32, DType::int64}) {
    CHECK_THROWS_TEXT(DTypeError, str("randn: expected *float*got ", t), randn({2}, {.dtype = t}));
    CHECK_THROWS_TEXT(DTypeError, "rand: expected *float*got ", rand({2}, {.dtype = t}));
    CHECK_THROWS_TEXT(DTypeError, "uniform: expected *float*got ",
                      uniform({2}, 0, 1, {.dtype = t}));
  }
  CHECK_THROWS_TEXT(ArgumentError, "randint: expected low < high, got *5*5", randint(5, 5, {2}));
  CHECK_THROWS_TEXT(ArgumentError, "randint: ", randint(6, 5, {2}));
  const double most = 3.4e38;
  CHECK_THROWS_TEXT(ArgumentError,
                    "uniform: expected bounds, and a distance between them, of at most 3.40282e+38 "
                    "for float32, got -inf and inf",
                    uniform({3}, -kInf, kInf));
  CHECK_THROWS_TEXT(ArgumentError, "uniform: expected bounds", uniform({3}, 0, kInf));
  CHECK_THROWS_TEXT(ArgumentError, "uniform: expected bounds", uniform({3}, -most, most));
  CHECK_THROWS_TEXT(ArgumentError, "at most 65504 for float16, got 0 and 65505",
                    uniform({3}, 0, 65505, {.dtype = DType::float16}));
  CHECK_THROWS_TEXT(ArgumentError, "uniform: expected low <= high", uniform({3}, kNan, 1));
  CHECK(uniform({3}, 0, 65504, {.dtype = DType::float16}).numel() == 3);
  CHECK(uniform({3}, -most, most, {.dtype = DType::float64}).numel() == 3);
  CHECK_THROWS_AS(randn({-1}), ShapeError);
  CHECK_THROWS_AS(randperm(-1), ArgumentError);
  CHECK_THROWS_TEXT(
      ArgumentError,
      "randperm: expected at most 256 numbers, which uint8 represents exactly, got 257",
      randperm(257, {.dtype = DType::uint8}));
  CHECK_THROWS_AS(randperm(2050, {.dtype = DType::float16}), ArgumentError);
  CHECK(randperm(256, {.dtype = DType::uint8}).numel() == 256);
}

TEST_CASE("random: integers that the type does not reach are refused", "[random][errors]") {
  const auto of = [](std::int64_t low, std::int64_t high, DType t) {
    return randint(low, high, {8}, {.dtype = t});
  };
  const std::string text = "randint: expected numbers from ";
  CHECK_THROWS_TEXT(ArgumentError, text + "0 to 255 for uint8, got 0 to 999",
                    of(0, 1000, DType::uint8));
  CHECK_THROWS_TEXT(ArgumentError, text + "0 to 255 for uint8, got -1 to 4",
                    of(-1, 5, DType::uint8));
  CHECK_THROWS_TEXT(ArgumentError, text + "0 to 1 for bool, got 0 to 2", of(0, 3, DType::bool_));
  CHECK_THROWS_TEXT(ArgumentError,
                    text + "-2147483648 to 2147483647 for int32, got 0 to 4294967295",
                    of(0, std::int64_t{1} << 32, DType::int32));
  CHECK_THROWS_TEXT(ArgumentError, "for float16, got 0 to 65599", of(0, 65600, DType::float16));
  CHECK_NOTHROW(of(0, 256, DType::uint8));
  CHECK_NOTHROW(of(0, 2, DType::bool_));
  CHECK_NOTHROW(of(INT32_MIN, std::int64_t{1} << 31, DType::int32));
}

}  // namespace braid::test::on_device
