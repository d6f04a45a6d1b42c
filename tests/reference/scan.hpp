#pragma once
// Scans and sorting along a dim.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/array.hpp"

namespace reference {

/// Applies f to every line along dim; all results must have the same length. A scalar is a line of
/// one element, and the result is a scalar if it has one element.
template <class F> Array along(const Array& x, Int dim, F f) {
  Array a = x;
  const bool scalar = a.shape.empty();
  if (scalar) a.shape = {1};
  const int d = wrap(dim, rank(a));
  Sizes outer = a.shape;
  at(outer, d) = 1;
  const Sizes strides = row_major(a.shape);
  std::vector<std::vector<double>> results;
  for_each(outer, [&](const Sizes& index) {
    std::vector<double> line;
    for (Int j = 0; j < at(a.shape, d); ++j)
      line.push_back(a[offset(index, strides) + j * at(strides, d)]);
    results.push_back(f(static_cast<const std::vector<double>&>(line)));
  });
  Sizes shape = a.shape;
  // Without lines, the length is that of the result for a line of zeros.
  at(shape, d) = static_cast<Int>(
      results.empty() ? f(std::vector<double>(static_cast<std::size_t>(at(a.shape, d)))).size()
                      : results[0].size());
  const Sizes lines = row_major(outer);
  Array out = generate(shape, [&](Sizes i) {
    const auto j = static_cast<std::size_t>(at(i, d));
    at(i, d) = 0;
    return results.at(static_cast<std::size_t>(offset(i, lines))).at(j);
  });
  if (scalar && out.size() == 1) out.shape = {};
  return out;
}

inline std::vector<double> running_sums(const Numbers& line) {
  std::vector<double> out;
  long double sum = 0;
  for (const double x : line) out.push_back(static_cast<double>(sum += x));
  return out;
}
inline std::vector<double> running_products(const Numbers& line) {
  std::vector<double> out;
  long double product = 1;
  for (const double x : line) out.push_back(static_cast<double>(product *= x));
  return out;
}
inline Array cumsum(const Array& x, Int dim) { return along(x, dim, running_sums); }
inline Array cumprod(const Array& x, Int dim) { return along(x, dim, running_products); }

/// Returns the indices that sort a line: stable, with NaN as the largest.
inline std::vector<std::size_t> order(const Numbers& line, bool descending) {
  std::vector<std::size_t> places(line.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  for (std::size_t i = 1; i < places.size(); ++i)  // insertion sort
    for (std::size_t j = i; j > 0; --j) {
      const double before = line[places[j - 1]], own = line[places[j]];
      if (!(descending ? less(before, own) : less(own, before))) break;
      std::swap(places[j - 1], places[j]);
    }
  return places;
}
/// Returns the first k sorted values (all if k < 0), or their indices.
inline Array sorted(const Array& x, Int dim, bool descending, bool indices, Int k = -1) {
  return along(x, dim, [=](const Numbers& line) {
    std::vector<double> out;
    for (const std::size_t p : order(line, descending))
      if (k < 0 || static_cast<Int>(out.size()) < k)
        out.push_back(indices ? static_cast<double>(p) : line[p]);
    if (k > static_cast<Int>(line.size())) throw std::logic_error("reference::sorted");
    return out;
  });
}

}  // namespace reference
