#pragma once
// The random numbers with which dropout and attention are called, and those of their references.
#include <functional>

#include <braid/core/random.hpp>

#include "op_case_makers.hpp"
#include "reference/norm.hpp"

namespace braid::test {

/// Stream 5 of the current seed, and batch rows from 3 on. The references use the same.
inline constexpr std::uint64_t kStream = 5;
inline constexpr I kFirstRow = 3;
template <class F> auto as_one_forward(T x, F f) {
  const RandomScope forward(kStream, {0, 0, kFirstRow, x.dim() > 0 ? x.shape()[0] : 1});
  return f();
}
/// Returns a function of i: the dropout factor of element `first` + i of a batch.
inline std::function<double(I)> factors(I first, double p) {
  return [=, seed = initial_seed()](I i) {
    return p < 1 ? reference::drop_factor(seed, kStream, first + i, p) : 0;
  };
}

}  // namespace braid::test
