#pragma once
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"

// The weights of normalised rows, for the forward and the backward pass.
namespace braid::cuda {

/// A row's weights: one for each `inner` elements, or `rest` if there are none. Rows with inner > 1
/// have less than 2^31 elements (checked), because a 64-bit division is slow.
template <class E> struct RowWeights {
  const typename E::T* p;
  std::int64_t groups, count, inner;
  bool packs;
  template <int N>
  BRAID_DEVICE void load(typename E::A (&to)[N], std::int64_t row, std::int64_t j, std::int64_t n,
                         typename E::A rest) const {
    if (p == nullptr) {
#pragma unroll
      for (int v = 0; v < N; ++v) to[v] = rest;
      return;
    }
    const typename E::T* const of_row = groups == 1 ? p : p + row % groups * count;
    if (inner == 1) return load_row<E>(to, of_row, j, n, packs, rest);
#pragma unroll
    for (int v = 0; v < N; ++v)
      to[v] =
          j + v < n
              ? E::load(
                    of_row[static_cast<std::uint32_t>(j + v) / static_cast<std::uint32_t>(inner)])
              : rest;
  }
};

template <class E, class Args> RowWeights<E> weights_of(const Args& args, const void* p) {
  const auto* at = static_cast<const typename E::T*>(p);
  return {at, args.groups, args.n / args.inner, args.inner,
          at != nullptr && args.inner == 1 && rows_in_packs(args.n, at)};
}

inline void check_runs(const char* op, std::int64_t n, std::int64_t inner) {
  if (inner > 1 && n > INT32_MAX) fail_size(op, "a group of less than 2^31 elements", n);
}

}  // namespace braid::cuda
