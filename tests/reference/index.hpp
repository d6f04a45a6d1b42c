#pragma once
// Indexing and concatenating along a dim.
#include "reference/array.hpp"

namespace reference {

inline Array index_select(const Array& x, Int dim, const std::vector<Int>& index) {
  const int d = wrap(dim, rank(x));
  Sizes shape = x.shape;
  at(shape, d) = static_cast<Int>(index.size());
  return generate(shape, [&](Sizes i) {
    const Int from = index.at(static_cast<std::size_t>(at(i, d)));
    at(i, d) = from < 0 ? from + at(x.shape, d) : from;
    return value(x, i);
  });
}

/// Rows of `weight`, selected by an index of any shape.
inline Array embedding(const Array& weight, const Array& index) {
  std::vector<Int> flat;
  for (const double v : index.data) flat.push_back(static_cast<Int>(v));
  Array out = index_select(weight, 0, flat);
  Sizes shape = index.shape;
  shape.insert(shape.end(), weight.shape.begin() + 1, weight.shape.end());
  out.shape = shape;
  return out;
}

inline Array cat(const std::vector<Array>& parts, Int dim) {
  const int d = wrap(dim, rank(parts.at(0)));
  Sizes shape = parts[0].shape;
  at(shape, d) = 0;
  for (const Array& p : parts) at(shape, d) += at(p.shape, d);
  return generate(shape, [&](Sizes i) {
    std::size_t part = 0;
    while (at(i, d) >= at(parts.at(part).shape, d)) at(i, d) -= at(parts[part++].shape, d);
    return value(parts[part], i);
  });
}

inline Array stack(std::vector<Array> parts, Int dim) {
  const int d = wrap(dim, rank(parts.at(0)) + 1);
  for (Array& p : parts) p.shape.insert(p.shape.begin() + d, 1);
  return cat(parts, d);
}

}  // namespace reference
