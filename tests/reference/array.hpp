#pragma once
// Plain arrays of doubles and plain loops over them, with which results are compared. This folder
// uses nothing of the library.
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace reference {

using Int = std::int64_t;
using Sizes = std::vector<Int>;
using Numbers = std::vector<double>;

inline Int count(const Sizes& shape) {
  Int n = 1;
  for (const Int s : shape) n *= s;
  return n;
}

/// A contiguous row-major array. Rank 0 has one element.
struct Array {
  Sizes shape;
  std::vector<double> data;
  Array() = default;
  explicit Array(Sizes s, double value = 0)
      : shape(std::move(s)), data(static_cast<std::size_t>(count(shape)), value) {}
  Array(Sizes s, std::vector<double> values) : shape(std::move(s)), data(std::move(values)) {
    if (static_cast<Int>(data.size()) != count(shape))
      throw std::logic_error("reference::Array: number of values");
  }
  [[nodiscard]] Int size() const { return static_cast<Int>(data.size()); }
  [[nodiscard]] double operator[](Int i) const { return data.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] double& operator[](Int i) { return data.at(static_cast<std::size_t>(i)); }
};

inline int rank(const Array& a) { return static_cast<int>(a.shape.size()); }
inline Int at(const Sizes& s, int i) { return s.at(static_cast<std::size_t>(i)); }
inline Int& at(Sizes& s, int i) { return s.at(static_cast<std::size_t>(i)); }

inline Sizes row_major(const Sizes& shape) {
  Sizes strides(shape.size());
  Int step = 1;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    at(strides, i) = step;
    step *= at(shape, i);
  }
  return strides;
}

// The following loops use raw pointers: without optimisation and under sanitizers, the tests spend
// much of their time in them.

inline Int offset(const Sizes& index, const Sizes& strides) {
  if (strides.size() < index.size())
    throw std::out_of_range("reference::offset: fewer strides than indices");
  const Int *const i = index.data(), *const s = strides.data();
  Int sum = 0;
  for (std::size_t d = 0, rank = index.size(); d < rank; ++d) sum += i[d] * s[d];
  return sum;
}

/// Calls f(index) for every index of the shape; the last dim varies fastest.
template <class F> void for_each(const Sizes& shape, F f) {
  if (count(shape) == 0) return;
  Sizes index(shape.size(), 0);
  Int* const i = index.data();
  const Int* const s = shape.data();
  for (;;) {
    f(static_cast<const Sizes&>(index));
    std::size_t d = shape.size();
    for (; d > 0; --d) {
      if (++i[d - 1] < s[d - 1]) break;
      i[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

inline double value(const Array& a, const Sizes& index) {
  if (index.size() != a.shape.size())
    throw std::out_of_range("reference::value: another number of indices than dims");
  const Int *const i = index.data(), *const s = a.shape.data();
  Int n = 0;
  for (std::size_t d = 0, rank = index.size(); d < rank; ++d) n = n * s[d] + i[d];
  return a[n];
}

/// out[index] = f(index).
template <class F> Array generate(const Sizes& shape, F f) {
  Array out(shape);
  Int i = 0;
  for_each(shape, [&](const Sizes& index) { out[i++] = f(index); });
  return out;
}

inline int wrap(Int dim, Int rank_of) { return static_cast<int>(dim < 0 ? dim + rank_of : dim); }

}  // namespace reference
