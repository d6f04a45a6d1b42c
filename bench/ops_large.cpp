#include "ops_large.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <braid/braid.hpp>

#include "support/formula.hpp"
#include "support/timing.hpp"

namespace bench {
namespace {

using braid::Tensor;
using Numbers = std::vector<double>;

constexpr std::uint64_t kThirdSeed = 3;

/// Calls f(begin, end) for each row of a copy of a matrix [rows, n], and returns the copy.
template <class F>
Numbers by_rows(std::int64_t rows, std::int64_t n, const std::vector<float>& x, const F& f) {
  Numbers out(x.begin(), x.end());
  for (std::int64_t r = 0; r < rows; ++r) f(out.begin() + r * n, out.begin() + (r + 1) * n);
  return out;
}

template <class F>
LargeOp large(const char* name, double bar, double tuned_bar, int steps, F run,
              std::function<Numbers()> want, double scale) {
  Beside row{name, bar, tuned_bar, steps, steps, [run](int count) {
               const braid::NoGrad guard;
               return time_step(count, [&] { (void)run(); });
             }};
  return {std::move(row), [run] { return run().template to_vector<double>(); }, std::move(want),
          scale};
}

LargeOp softmax_4096() {
  constexpr std::int64_t kSide = 4096;
  const Tensor x = braid::tensor(uniform(kSide * kSide, kInputSeed)).reshape({kSide, kSide});
  const auto want = [] {
    return by_rows(kSide, kSide, uniform(kSide * kSide, kInputSeed), [](auto begin, auto end) {
      std::transform(begin, end, begin, [](double v) { return std::exp(v); });  // |v| <= 1
      const double sum = std::accumulate(begin, end, 0.0);
      std::transform(begin, end, begin, [sum](double v) { return v / sum; });
    });
  };
  return large("softmax_4096", 4.0, 1.0, 10, [x] { return softmax(x); }, want, 1.0 / kSide);
}

LargeOp add_1e7() {
  constexpr std::int64_t kCount = 10'000'000;
  const Tensor x = braid::tensor(uniform(kCount, kInputSeed)),
               y = braid::tensor(uniform(kCount, kTargetSeed));
  const auto want = [] {
    const std::vector<float> a = uniform(kCount, kInputSeed), b = uniform(kCount, kTargetSeed);
    Numbers sum(a.begin(), a.end());
    std::transform(sum.begin(), sum.end(), b.begin(), sum.begin(),
                   [](double s, float v) { return s + double{v}; });
    return sum;
  };
  return large("add_1e7", 4.0, 1.0, 20, [x, y] { return x + y; }, want, 1.0);
}

LargeOp layernorm_4096x1024() {
  constexpr std::int64_t kRows = 4096, kWidth = 1024;
  const Tensor x = braid::tensor(uniform(kRows * kWidth, kInputSeed)).reshape({kRows, kWidth});
  const Tensor weight = braid::tensor(uniform(kWidth, kTargetSeed)),
               bias = braid::tensor(uniform(kWidth, kThirdSeed));
  const auto want = [] {
    const std::vector<float> w = uniform(kWidth, kTargetSeed), b = uniform(kWidth, kThirdSeed);
    return by_rows(kRows, kWidth, uniform(kRows * kWidth, kInputSeed), [&](auto begin, auto end) {
      const double mean = std::accumulate(begin, end, 0.0) / kWidth;
      const double var =
          std::accumulate(begin, end, 0.0,
                          [mean](double s, double v) { return s + (v - mean) * (v - mean); }) /
          kWidth;
      for (auto v = begin; v != end; ++v) {
        const auto i = static_cast<std::size_t>(v - begin);
        *v = (*v - mean) / std::sqrt(var + 1e-5) * double{w[i]} + double{b[i]};
      }
    });
  };
  return large(
      "layernorm_4096x1024", 1.0, Beside::kShown, 100,
      [x, weight, bias] { return layer_norm(x, {kWidth}, weight, bias); }, want, 1.0);
}

}  // namespace

std::vector<LargeOp> large_ops() { return {softmax_4096(), add_1e7(), layernorm_4096x1024()}; }

std::string disagreement(const LargeOp& op, int threads, const Peers& peers) {
  braid::set_num_threads(threads);
  const Numbers want = op.want(), ours = op.ours();
  if (ours.size() != want.size())
    return braid::str("braid: expected ", want.size(), " numbers, got ", ours.size());
  const auto far = [&](double got, double expected) {
    return !(std::abs(got - expected) <= 1e-5 * std::max(op.scale, std::abs(expected)));
  };
  for (std::size_t i = 0; i < want.size(); ++i)
    if (far(ours[i], want[i]))
      return braid::str("braid, number ", i, ": expected ", want[i], ", got ", ours[i]);
  constexpr std::size_t kSamples = 50;
  for (const auto* list : {&peers.list, &peers.tuned})
    for (const auto& peer : *list) {
      if (!peer->available()) continue;
      const Numbers theirs = peer->losses(op.row.name, threads, kSamples);
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const double expected = want[i * (want.size() / kSamples)];
        if (far(theirs[i], expected))
          return braid::str(peer->name(), ", sample ", i, ": expected ", expected, ", got ",
                            theirs[i]);
      }
    }
  return "";
}

}  // namespace bench
