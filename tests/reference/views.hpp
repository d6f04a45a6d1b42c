#pragma once
// Reference results of the ops that make views, as copies.
#include <algorithm>

#include "reference/array.hpp"

namespace reference {

inline Array permute(const Array& x, const Sizes& dims) {
  Sizes shape;
  for (const Int d : dims) shape.push_back(at(x.shape, wrap(d, rank(x))));
  return generate(shape, [&](const Sizes& i) {
    Sizes from(i.size());
    for (std::size_t k = 0; k < i.size(); ++k) at(from, wrap(dims[k], rank(x))) = i[k];
    return value(x, from);
  });
}

inline Array transpose(const Array& x, Int a, Int b) {
  if (rank(x) == 0) return x;
  Sizes dims;
  for (int i = 0; i < rank(x); ++i) dims.push_back(i);
  std::swap(at(dims, wrap(a, rank(x))), at(dims, wrap(b, rank(x))));
  return permute(x, dims);
}

/// Elements start, start + step, … < end; negative and large bounds follow Python's rule.
inline Array slice(const Array& x, Int dim, Int start, Int end, Int step = 1) {
  const int d = wrap(dim, rank(x));
  const Int n = at(x.shape, d);
  const auto clamp = [n](Int v) { return std::clamp<Int>(v < 0 ? v + n : v, 0, n); };
  const Int first = clamp(start), last = clamp(end);
  Sizes shape = x.shape;
  at(shape, d) = 0;
  for (Int i = first; i < last; i += step) ++at(shape, d);
  return generate(shape, [&](Sizes i) {
    at(i, d) = first + at(i, d) * step;
    return value(x, i);
  });
}

inline Array select(const Array& x, Int dim, Int index) {
  const int d = wrap(dim, rank(x));
  const int from = wrap(index, at(x.shape, d));
  Array out = slice(x, d, from, from + 1);
  out.shape.erase(out.shape.begin() + d);
  return out;
}

/// One of the sizes may be -1.
inline Array reshape(Array x, Sizes shape) {
  Int known = 1;
  for (const Int s : shape)
    if (s != -1) known *= s;
  for (Int& s : shape)
    if (s == -1) s = x.size() / known;
  return Array(shape, std::move(x.data));
}

/// Expands to explicit sizes (no -1).
inline Array expand(const Array& x, const Sizes& shape) {
  const std::size_t skip = shape.size() - x.shape.size();
  return generate(shape, [&](const Sizes& i) {
    Sizes from;
    for (std::size_t k = 0; k < x.shape.size(); ++k)
      from.push_back(x.shape[k] == 1 ? 0 : i[k + skip]);
    return value(x, from);
  });
}

}  // namespace reference
