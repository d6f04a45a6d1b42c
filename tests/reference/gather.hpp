#pragma once
// Selects elements by index along a dim, and by masks.
#include <algorithm>

#include "reference/elementwise.hpp"
#include "reference/reduce.hpp"

namespace reference {

inline Array gather(Array x, Int dim, Array index) {
  const bool scalar = x.shape.empty();
  if (scalar) x.shape = index.shape = {1};
  const int d = wrap(dim, rank(x));
  Array out = generate(index.shape, [&](Sizes i) {
    at(i, d) = static_cast<Int>(value(index, i));
    for (int k = 0; k < rank(x); ++k)
      if (at(i, k) < 0 || at(i, k) >= at(x.shape, k)) throw std::logic_error("reference::gather");
    return value(x, i);
  });
  if (scalar) out.shape = {};
  return out;
}

/// Writes in row-major order of the index, so the last value along each line wins.
inline Array scatter(Array x, Int dim, Array index, Array src, bool add) {
  const bool scalar = x.shape.empty();
  if (scalar) x.shape = index.shape = src.shape = {1};
  const int d = wrap(dim, rank(x));
  const Sizes strides = row_major(x.shape);
  for_each(index.shape, [&](const Sizes& i) {
    Sizes to = i;
    at(to, d) = static_cast<Int>(value(index, i));
    for (int k = 0; k < rank(x); ++k)
      if (at(to, k) < 0 || at(to, k) >= at(x.shape, k) || at(i, k) >= at(src.shape, k))
        throw std::logic_error("reference::scatter");
    double& element = x[offset(to, strides)];
    element = value(src, i) + (add ? element : 0);
  });
  if (scalar) x.shape = {};
  return x;
}

inline Array index_add(Array x, Int dim, const Array& index, const Array& source, double alpha) {
  const int d = wrap(dim, rank(x));
  const Sizes strides = row_major(x.shape);
  for_each(source.shape, [&](const Sizes& i) {
    Sizes to = i;
    at(to, d) = static_cast<Int>(index[at(i, d)]);
    x[offset(to, strides)] += alpha * value(source, i);
  });
  return x;
}

inline Array take_along_dim(const Array& x, const Array& index, Int dim) {
  const int d = wrap(dim, rank(x));
  Sizes of_x = x.shape, of_index = index.shape;
  at(of_x, d) = at(of_index, d) = 1;
  Sizes shape = broadcast(of_x, of_index);
  at(shape, d) = at(index.shape, d);
  const Sizes steps_x = row_major(x.shape), steps_index = row_major(index.shape);
  return generate(shape, [&](const Sizes& i) {
    Int from = 0, which = 0;
    for (int k = 0; k < rank(x); ++k)
      which += at(index.shape, k) == 1 ? 0 : at(i, k) * at(steps_index, k);
    for (int k = 0; k < rank(x); ++k)
      from += k == d                ? static_cast<Int>(index[which]) * at(steps_x, k)
              : at(x.shape, k) == 1 ? 0
                                    : at(i, k) * at(steps_x, k);
    return x[from];
  });
}

inline Array masked_select(const Array& x, const Array& mask) {
  std::vector<double> chosen;
  for_each(broadcast(x.shape, mask.shape), [&](const Sizes& i) {
    if (broadcast_value(mask, i) != 0) chosen.push_back(broadcast_value(x, i));
  });
  return Array({static_cast<Int>(chosen.size())}, chosen);
}

inline Array nonzero(const Array& x) {
  std::vector<double> places;
  Int n = 0;
  for_each(x.shape, [&](const Sizes& i) {
    if (value(x, i) == 0) return;
    ++n;
    for (const Int k : i) places.push_back(static_cast<double>(k));
  });
  return Array({n, rank(x)}, places);
}

inline Array one_hot(const Array& index, Int classes) {
  if (classes < 0)
    classes = static_cast<Int>(*std::max_element(index.data.begin(), index.data.end())) + 1;
  Sizes shape = index.shape;
  shape.push_back(classes);
  return generate(shape, [&](Sizes i) {
    const auto c = static_cast<double>(i.back());
    i.pop_back();
    return value(index, i) == c ? 1.0 : 0.0;
  });
}

}  // namespace reference
