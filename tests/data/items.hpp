#pragma once
// Small datasets, and functions that collect the batches of a loader.
#include <algorithm>
#include <numeric>

#include <braid/braid.hpp>

namespace braid::test {

using Ids = std::vector<std::int64_t>;

/// Item i is i.
struct Integers {
  std::int64_t n;
  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] std::int64_t get(std::int64_t i) const { return i; }
};

/// A dataset whose item i is f(i).
template <class F> struct Made {
  std::int64_t n;
  F f;
  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] auto get(std::int64_t i) const { return f(i); }
};
template <class F> Made(std::int64_t, F) -> Made<F>;

inline Ids ids(const Tensor& t) { return t.to_vector<std::int64_t>(); }
/// Returns the numbers 0 to n - 1.
inline Ids upto(std::int64_t n) {
  Ids v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), std::int64_t{0});
  return v;
}
inline Ids sorted(Ids v) {
  std::sort(v.begin(), v.end());
  return v;
}
/// Returns the numbers of an epoch, with one list per batch.
template <class L> std::vector<Ids> batches_of(L& loader) {
  std::vector<Ids> batches;
  for (auto& batch : loader) batches.push_back(ids(batch));
  return batches;
}
/// Returns all numbers of an epoch.
template <class L> Ids epoch_of(L& loader) {
  Ids all;
  for (const Ids& batch : batches_of(loader)) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

}  // namespace braid::test
