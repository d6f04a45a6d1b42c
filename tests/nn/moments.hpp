#pragma once
#include <algorithm>
#include <cmath>

#include <braid/core/tensor.hpp>

namespace braid::test {

/// The number, mean, standard deviation and range of a tensor's elements.
struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY, n = 0;
};
inline Moments moments(const Tensor& t) {
  const std::vector<double> x = t.to_vector<double>();
  Moments m;
  m.n = static_cast<double>(x.size());
  for (const double v : x)
    m.mean += v / m.n, m.low = std::min(m.low, v), m.high = std::max(m.high, v);
  for (const double v : x) m.deviation += (v - m.mean) * (v - m.mean) / m.n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

}  // namespace braid::test
