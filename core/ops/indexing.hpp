#pragma once
// Shared by indexing.cpp, which makes views of integers and slices, and index_tensors.cpp.
#include <span>
#include <vector>

#include <braid/core/indexing.hpp>

#include "common.hpp"

namespace braid::ops {

using Indices = std::span<const indexing::TensorIndex>;

/// A mask of `count` dims from `dim` on, or an int64 index of one dim. Both are on x's device.
struct IndexedDims {
  int dim, count;
  int of_x;  ///< the first of them in x
  Tensor index;
};

/// x[…] without what its index tensors select.
struct Sliced {
  Shape whole;                       ///< of x
  Tensor view;                       ///< of x; recorded
  std::vector<int> reversed;         ///< its dims that are to be read backwards
  std::vector<IndexedDims> tensors;  ///< in the order of its dims
};
/// Throws what Tensor::index does, except for the values of index tensors.
[[nodiscard]] Sliced sliced(const char* op, const Tensor& x, Indices indices);

/// Returns view[part.tensors]. Recorded.
[[nodiscard]] Tensor taken(const char* op, const Sliced& part, const Tensor& view);
/// Writes or adds `value` at view[tensors], where the dims `reversed` of the view are read
/// backwards. Recorded. `view` is x or a view of x.
void put(const char* op, const Sliced& to, const Tensor& value, bool add);

/// Returns value without leading dims of size 1 beyond `rank` dims. Recorded.
[[nodiscard]] Tensor without_leading_ones(const Tensor& value, int rank);

}  // namespace braid::ops
