// Tests of dropout: the rate, the mask as a function of the position in the whole batch, forward
// passes.
#include "reference/norm.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("dropout: the mask is Philox's, whatever the type, the size and the number of threads",
          "[dropout]") {
  const KeepThreads keep;
  for (const DType t : floating_dtypes())
    for (const std::int64_t n : {1, 2, 3, 5, 63, 64, 65, 511, 513, 1027}) {
      manual_seed(11);
      const std::uint64_t stream = random_state().stream;
      INFO(t << " " << n);
      set_num_threads(1);
      const List y = list(dropout(ones({n}, {.dtype = t}), 0.25));
      bool same = true;
      for (std::int64_t i = 0; i < n; ++i)
        same = same && (y[static_cast<std::size_t>(i)] != 0) ==
                           (reference::drop_factor(11, stream, i, 0.25) != 0);
      CHECK(same);
      CHECK(random_state().stream == stream + 1);
    }
  const auto many = [](int threads) {
    manual_seed(11);
    set_num_threads(threads);
    return dropout(ones({cut(100000, 20000)}), 0.25);
  };
  CHECK_SAME_BITS(many(thread_counts({1, 3}).back()), many(1));
  manual_seed(0);
}

TEST_CASE("dropout: keeps the share and the mean that it should", "[dropout]") {
  const std::int64_t n = cut(200000, 20000);
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropout(ones({n}), p);
    const double kept = ne(y, zeros({})).to(DType::float32).mean().item<double>(),
                 deviation = std::sqrt(p * (1 - p) / static_cast<double>(n));
    INFO(p);
    CHECK(std::fabs(kept - (1 - p)) < 5 * deviation);
    CHECK(std::fabs(y.max().item<double>() * (1 - p) - 1) < 1e-6);
  }
}

TEST_CASE("dropout: in evaluation, and without probability, it is x itself", "[dropout]") {
  const Tensor x = ones({3, 4});
  CHECK(dropout(x, 0.5, false).id() == x.id());
  CHECK(dropout(x, 0).id() == x.id());
  CHECK(dropout2d(ones({2, 3, 4, 4}), 0.5, false).shape() == Shape{2, 3, 4, 4});
  CHECK(dropout1d(ones({4, 5}), 0.5).shape() == Shape{4, 5});
}

TEST_CASE("dropout: NaN and infinity times 0 are NaN", "[dropout]") {
  int nan = 0, infinite = 0;
  for (const double v : list(dropout(full({64}, kInf), 0.5)))
    nan += std::isnan(v), infinite += std::isinf(v);
  CHECK(nan + infinite == 64);
  CHECK(nan > 10);
  CHECK(infinite > 10);
}

TEST_CASE(
    "dropout: rows know their place in the whole batch, whatever is before or behind the batch's "
    "axis",
    "[dropout]") {
  const Tensor x = random_tensor({4, 7, 6}, DType::float32, here(), 3);
  for (const int dim : {0, 1, 2}) {
    const std::int64_t n = x.size(dim);
    const auto rows = [&](std::int64_t first, std::int64_t count,
                          const std::function<Tensor(T)>& f) {
      const RandomForward forward(77, {0, dim, first, count});
      return f(x.narrow(dim, first, count));
    };
    const auto plain = [](T part) { return dropout(dropout(part, 0.25), 0.5); };
    const Tensor whole = rows(0, n, plain);
    for (const std::int64_t cut_at : {std::int64_t{1}, n / 2, n - 1}) {
      INFO("dim " << dim << ", cut at " << cut_at);
      CHECK_SAME_BITS(cat({rows(0, cut_at, plain), rows(cut_at, n - cut_at, plain)}, dim), whole);
    }
    if (dim > 0) continue;
    // Batch rows combined with another dim in one axis, as [batch * heads, ..].
    const auto folded = [](T part) {
      return dropout(part.reshape({-1, 6}), 0.5).reshape(part.shape());
    };
    CHECK_SAME_BITS(cat({rows(0, 3, folded), rows(3, 1, folded)}), rows(0, 4, folded));
  }
}

TEST_CASE("dropout: random ops of a forward have streams of their own", "[dropout][random]") {
  manual_seed(4);
  const std::uint64_t start = random_state().stream;
  std::vector<Tensor> plain, within;
  for (int i = 0; i < 3; ++i) plain.push_back(dropout(ones({40})));
  CHECK(random_state().stream == start + 3);
  {
    const RandomForward forward(start, {0, 0, 0, 40});
    for (int i = 0; i < 3; ++i) within.push_back(dropout(ones({40})));
    CHECK(forward.used() == 3);
    CHECK(random_state().stream == start + 3);  // took none of the process's streams
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK_SAME_BITS(plain[i], within[i]);
  CHECK(!equal(plain[0], plain[1]));
  // In another replica, factories draw other numbers, but dropout draws the same mask.
  const auto drawn = [&](std::uint64_t replica) {
    const RandomForward forward(start, {replica, 0, 0, 40});
    return std::vector<Tensor>{rand({40}), dropout(ones({40}))};
  };
  CHECK(!equal(drawn(0)[0], drawn(1)[0]));
  CHECK_SAME_BITS(drawn(0)[1], drawn(1)[1]);
  manual_seed(0);
}

TEST_CASE("dropout: its masks are part of the state of the random numbers", "[dropout][random]") {
  manual_seed(5);
  const auto draw = [] { return cat({dropout(ones({40})), rand({40}), dropout(ones({40}))}); };
  (void)draw();
  const RandomState state = random_state();
  const Tensor after = draw();
  const RandomState later = random_state();
  CHECK(later.seed == 5);
  CHECK(later.stream == state.stream + 3);
  manual_seed(6);
  CHECK(!equal(draw(), after));
  set_random_state(state);
  CHECK_SAME_BITS(draw(), after);
  CHECK(random_state() == later);
  manual_seed(0);
}

}  // namespace braid::test::on_device
