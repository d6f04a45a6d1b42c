#pragma once
// Shared by the in-place ops. Each increments the storage's version, so that a backward that saved
// the old values throws instead of using the new ones.
#include "common.hpp"

namespace braid::ops {

/// Sets t = f(old t), with the gradient of f: f runs on a copy of the old values, and its result is
/// written back together with its graph.
template <class F> const Tensor& recorded_in_place(const Tensor& t, F f) {
  const Tensor old = t.detach().clone();
  if (t.id()->grad_fn) detail::attach(old, t.id()->grad_fn, t.id()->output_nr);
  const Tensor y = f(old);
  copy_values(t, y.detach());
  t.storage()->bump_version();
  if (y.id()->grad_fn) detail::attach(t, y.id()->grad_fn, y.id()->output_nr);
  return t;
}

/// Throws ShapeError unless `other` broadcasts to the shape of t.
inline void check_fits(const char* op, const Tensor& t, const Tensor& other) {
  if (broadcast_shapes(op, t.shape(), other.shape()) != t.shape())
    throw ShapeError(
        str(op, ": expected a shape that broadcasts to ", t.shape(), ", got ", other.shape()));
}
/// Returns true if an elementwise op that writes t could read elements of `other` after they were
/// overwritten.
[[nodiscard]] inline bool overlaps(const Tensor& t, const Tensor& other) {
  return other.storage() == t.storage() &&
         !(other.storage_offset() == t.storage_offset() && other.shape() == t.shape() &&
           other.strides() == t.strides());
}

}  // namespace braid::ops
