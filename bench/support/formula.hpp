#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

// The data and weights of the benchmarks, the same in every program: functions of (seed, index)
// only. peers/rows.py and peers/peer.cpp implement the same formulas.
namespace bench {

/// The upper 24 bits of lowbias32(index + seed · 0x9E3779B9).
[[nodiscard]] inline std::uint32_t hash24(std::uint64_t seed, std::uint64_t index) {
  auto h = static_cast<std::uint32_t>(index + seed * 0x9E3779B9u);
  h = (h ^ (h >> 16)) * 0x7FEB352Du;
  h = (h ^ (h >> 15)) * 0x846CA68Bu;
  return (h ^ (h >> 16)) >> 8;
}

/// Returns `count` numbers in [-scale, scale). With scale 1 they are exact in float32.
[[nodiscard]] inline std::vector<float> uniform(std::int64_t count, std::uint64_t seed,
                                                double scale = 1.0) {
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((hash24(seed, i) * 0x1p-23 - 1.0) * scale);
  return v;
}

/// Returns `count` labels in [0, classes).
[[nodiscard]] inline std::vector<std::int64_t> labels(std::int64_t count, std::uint32_t classes,
                                                      std::uint64_t seed) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = hash24(seed, i) % classes;
  return v;
}

/// Returns the weights of parameter k: a matrix [out, in] or the bias that follows it.
[[nodiscard]] inline std::vector<float> weights(std::int64_t count, std::uint64_t k,
                                                std::int64_t fan_in) {
  return uniform(count, 100 + k, 1.0 / std::sqrt(static_cast<double>(fan_in)));
}

constexpr std::uint64_t kInputSeed = 1, kTargetSeed = 2;
constexpr double kLearningRate = 0.01;

}  // namespace bench
