#pragma once
// Rearranges elements; each result element is read from its source position.
#include <algorithm>

#include "reference/array.hpp"

namespace reference {

inline Array flip(const Array& x, const Sizes& dims) {
  return generate(x.shape, [&](Sizes i) {
    for (const Int dim : dims) {
      const int d = wrap(dim, rank(x));
      at(i, d) = at(x.shape, d) - 1 - at(i, d);
    }
    return value(x, i);
  });
}

inline Array roll(const Array& x, const Sizes& shifts, const Sizes& dims) {
  if (dims.empty()) {
    Array out = x;
    for (Int i = 0; i < x.size(); ++i)
      out[((i + shifts.at(0)) % x.size() + x.size()) % x.size()] = x[i];
    return out;
  }
  return generate(x.shape, [&](Sizes i) {
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const int d = wrap(dims[k], rank(x));
      const Int n = at(x.shape, d);
      at(i, d) = ((at(i, d) - shifts[k]) % n + n) % n;
    }
    return value(x, i);
  });
}

inline Array repeat(Array x, const Sizes& times) {
  while (x.shape.size() < times.size()) x.shape.insert(x.shape.begin(), 1);
  Sizes shape = x.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] *= times[d];
  return generate(shape, [&](Sizes i) {
    for (std::size_t d = 0; d < i.size(); ++d) i[d] %= x.shape[d];
    return value(x, i);
  });
}

inline Array repeat_interleave(const Array& x, Int times, Int dim) {
  const int d = wrap(dim, rank(x));
  Sizes shape = x.shape;
  at(shape, d) *= times;
  return generate(shape, [&](Sizes i) {
    at(i, d) /= times;
    return value(x, i);
  });
}

/// Position i outside [0, n) is filled with element place(i, n), or with `constant` if place
/// returns -1. `sizes` as in pad: pairs that start with the last dim.
template <class F> Array pad(const Array& x, const Sizes& sizes, double constant, F place) {
  Sizes shape = x.shape, before(x.shape.size(), 0);
  for (std::size_t k = 0; k < sizes.size() / 2; ++k) {
    const std::size_t d = shape.size() - 1 - k;
    before[d] = sizes[2 * k];
    shape[d] += sizes[2 * k] + sizes[2 * k + 1];
    if (shape[d] < 0) throw std::logic_error("reference::pad");
  }
  return generate(shape, [&](Sizes i) {
    for (std::size_t d = 0; d < i.size(); ++d) {
      i[d] -= before[d];
      if (i[d] < 0 || i[d] >= x.shape[d]) i[d] = place(i[d], x.shape[d]);
      if (i[d] < 0) return constant;
    }
    return value(x, i);
  });
}

inline Array triangle(const Array& x, Int diagonal, bool lower) {
  return generate(x.shape, [&](const Sizes& i) {
    const Int above = at(i, rank(x) - 1) - at(i, rank(x) - 2);
    return (lower ? above <= diagonal : above >= diagonal) ? value(x, i) : 0.0;
  });
}

inline Array diagonal(const Array& x, Int diagonal_offset, Int a, Int b) {
  const int row = wrap(a, rank(x)), column = wrap(b, rank(x));
  const Int first_row = std::max<Int>(-diagonal_offset, 0),
            first_column = std::max<Int>(diagonal_offset, 0);
  Sizes shape;
  for (int d = 0; d < rank(x); ++d)
    if (d != row && d != column) shape.push_back(at(x.shape, d));
  shape.push_back(
      std::max<Int>(std::min(at(x.shape, row) - first_row, at(x.shape, column) - first_column), 0));
  return generate(shape, [&](const Sizes& i) {
    Sizes from;
    std::size_t k = 0;
    for (int d = 0; d < rank(x); ++d)
      from.push_back(d == row      ? first_row + i.back()
                     : d == column ? first_column + i.back()
                                   : i[k++]);
    return value(x, from);
  });
}

inline Array diag(const Array& x, Int diagonal_offset) {
  const Int n = x.size() + std::max(diagonal_offset, -diagonal_offset);
  return generate(Sizes{n, n}, [&](const Sizes& i) {
    return i[1] - i[0] == diagonal_offset ? x[std::min(i[0], i[1])] : 0.0;
  });
}

}  // namespace reference
