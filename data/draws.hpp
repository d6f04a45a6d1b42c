#pragma once
#include <cstdint>

#include <braid/core/internal/philox.hpp>

namespace braid::data {

/// The sequence of random numbers of one item.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  float between(float low, float high) {
    return low + (high - low) * random_uniform_float(seed_, stream_, next_++);
  }
  float around(float most) { return between(-most, most); }
  // from later blocks than between()
  std::int64_t below(std::int64_t n) {
    return random_integer(seed_, stream_, 1024 + next_++, 0, n);
  }

 private:
  std::uint64_t seed_, stream_, next_ = 0;
};

}  // namespace braid::data
