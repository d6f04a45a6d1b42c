#pragma once
// Elementwise operations with broadcasting.
#include <algorithm>
#include <cmath>

#include "reference/array.hpp"

namespace reference {

inline Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Int x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const Int y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw std::logic_error("reference::broadcast");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

/// Returns the element of `a` at `index` of a shape that a is broadcast to.
inline double broadcast_value(const Array& a, const Sizes& index) {
  const std::size_t skip = index.size() - a.shape.size();
  const Sizes strides = row_major(a.shape);
  Int sum = 0;
  for (std::size_t i = 0; i < a.shape.size(); ++i)
    sum += (a.shape[i] == 1 ? 0 : index[i + skip]) * strides[i];
  return a[sum];
}

template <class F> Array map(const Array& a, F f) {
  Array out(a.shape);
  for (Int i = 0; i < a.size(); ++i) out[i] = f(a[i]);
  return out;
}

template <class F> Array zip(const Array& a, const Array& b, F f) {
  return generate(broadcast(a.shape, b.shape), [&](const Sizes& i) {
    return static_cast<double>(f(broadcast_value(a, i), broadcast_value(b, i)));
  });
}

inline Array where(const Array& condition, const Array& a, const Array& b) {
  return generate(broadcast(condition.shape, broadcast(a.shape, b.shape)), [&](const Sizes& i) {
    return broadcast_value(condition, i) != 0 ? broadcast_value(a, i) : broadcast_value(b, i);
  });
}

inline Array abs(const Array& a) {
  return map(a, [](double x) { return std::fabs(x); });
}

/// Returns the larger number; NaN if either is NaN.
inline double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

inline double sign(double x) { return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace reference
