#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

[[nodiscard]] inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const std::size_t middle = v.size() / 2;
  return v.size() % 2 ? v[middle] : (v[middle - 1] + v[middle]) / 2;
}

/// Returns the median time of a step in us over at most 50 timed batches, after a warm-up of 3
/// steps and a tenth of `iterations`. The peers measure in the same way.
template <class Step> [[nodiscard]] double time_step(int iterations, Step&& step) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 3 + iterations / 10; ++i) step();
  const int batches = std::min(50, iterations), steps = iterations / batches;
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(batches));
  for (int b = 0; b < batches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < steps; ++i) step();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                    steps);
  }
  return median(std::move(times));
}

/// The times of one contender over all rounds.
struct Series {
  std::vector<double> us;  ///< one time for each turn; two turns in each round
  bool failed = false;     ///< a turn gave no time; the contender counts as missing
  [[nodiscard]] double time() const { return failed ? 0 : median(us); }
  /// The relative difference between the two turns of a round, as the median over the rounds. A
  /// ratio of two contenders that is closer to 1 than twice this value is not significant.
  [[nodiscard]] double noise() const {
    std::vector<double> apart;
    for (std::size_t i = 0; i + 1 < us.size(); i += 2)
      apart.push_back(std::max(us[i], us[i + 1]) / std::min(us[i], us[i + 1]) - 1);
    return median(std::move(apart));
  }
};

/// Times the contenders alternately in ABBA order: every round runs all of them forwards, then
/// backwards, so that a drift of the machine affects all equally. A contender returns the time of a
/// step in us, or 0 if it has none; it is then not called again.
[[nodiscard]] inline std::vector<Series> interleave(
    int rounds, const std::vector<std::function<double()>>& contenders) {
  std::vector<Series> series(contenders.size());
  const auto turn = [&](std::size_t i) {
    if (series[i].failed) return;
    // lets spinning threads of the previous contender go to sleep
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double us = contenders[i]();
    if (us > 0) series[i].us.push_back(us);
    else series[i].failed = true;
  };
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) turn(i);
    for (std::size_t i = contenders.size(); i-- > 0;) turn(i);
  }
  return series;
}

}  // namespace bench
