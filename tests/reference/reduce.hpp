#pragma once
// Reductions over any set of dims.
#include <limits>

#include "reference/elementwise.hpp"

namespace reference {

/// Calls fold(values of one group, in row-major order of the reduced dims) for every element of the
/// result. Empty dims reduce all.
template <class F> Array reduce(const Array& a, const Sizes& dims, bool keepdim, F fold) {
  std::vector<bool> over(a.shape.size(), dims.empty());
  for (const Int d : dims)
    if (!over.empty()) over[static_cast<std::size_t>(wrap(d, rank(a)))] = true;
  Sizes kept = a.shape;  // with 1 in the reduced dims
  Sizes inner(a.shape.size(), 1);
  for (std::size_t i = 0; i < over.size(); ++i)
    if (over[i]) {
      inner[i] = a.shape[i];
      kept[i] = 1;
    }
  const Sizes strides = row_major(a.shape);
  Array out(kept);
  Int n = 0;
  for_each(kept, [&](const Sizes& base) {
    std::vector<double> group;
    for_each(inner, [&](const Sizes& step) {
      group.push_back(a[offset(base, strides) + offset(step, strides)]);
    });
    out[n++] = fold(static_cast<const std::vector<double>&>(group));
  });
  if (!keepdim) {
    Sizes shape;
    for (std::size_t i = 0; i < over.size(); ++i)
      if (!over[i]) shape.push_back(a.shape[i]);
    out.shape = shape;
  }
  return out;
}

inline double total(const Numbers& v) {
  long double sum = 0;
  for (const double x : v) sum += x;
  return static_cast<double>(sum);
}

inline Array sum(const Array& a, const Sizes& dims = {}, bool keepdim = false) {
  return reduce(a, dims, keepdim, total);
}

inline Array mean(const Array& a, const Sizes& dims = {}, bool keepdim = false) {
  return reduce(a, dims, keepdim, [](const Numbers& v) {
    return v.empty() ? std::numeric_limits<double>::quiet_NaN()
                     : total(v) / static_cast<double>(v.size());
  });
}

/// Returns the index of the first element that no other one beats; a NaN beats all.
template <class Beats> std::size_t first_best(const Numbers& v, Beats beats) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(v[i])) return i;
    if (beats(v[i], v[best])) best = i;
  }
  return best;
}
inline std::size_t first_largest(const Numbers& v) {
  return first_best(v, [](double a, double b) { return a > b; });
}
inline std::size_t first_smallest(const Numbers& v) {
  return first_best(v, [](double a, double b) { return a < b; });
}

inline Array max(const Array& a, const Sizes& dims = {}, bool keepdim = false) {
  return reduce(a, dims, keepdim, [](const Numbers& v) { return v.at(first_largest(v)); });
}
inline Array min(const Array& a, const Sizes& dims = {}, bool keepdim = false) {
  return reduce(a, dims, keepdim, [](const Numbers& v) { return v.at(first_smallest(v)); });
}
inline Array argmax(const Array& a, Int dim, bool keepdim = false) {
  return reduce(a, {dim}, keepdim,
                [](const Numbers& v) { return static_cast<double>(first_largest(v)); });
}
inline Array argmin(const Array& a, Int dim, bool keepdim = false) {
  return reduce(a, {dim}, keepdim,
                [](const Numbers& v) { return static_cast<double>(first_smallest(v)); });
}

}  // namespace reference
