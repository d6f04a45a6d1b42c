#pragma once
// Error bounds of softmax and log_softmax, in roundings. cross_entropy has them too.
#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/softmax.hpp"

namespace braid::test {

/// The error of softmax in roundings, from those of its steps: the rounding of x - max, exp within
/// 4 ULP (8 roundings), the bound of the sum, the division.
inline Array range_of(A x, I dim) {
  return reference::zip(reference::max(x, {dim}, true), reference::min(x, {dim}, true),
                        std::minus<>());
}
inline Array softmax_bound(A x, I dim) {
  const Array range = range_of(x, dim);
  const double terms = terms_of(x, range);
  return reference::zip(reference::softmax(x, dim), range, [=](double v, double d) {
    return v * (2 * (d + 8) + log2_ceil(terms) + 4);
  });
}
/// The error of x - (max + log Σ): the same sum, log within 4 ULP, two subtractions.
inline Array log_softmax_bound(A x, I dim) {
  const Array y = reference::log_softmax(x, dim), range = range_of(x, dim);
  const double terms = terms_of(x, range);
  const Array of_lse = reference::zip(
      range, reference::max(y, {dim}, true),
      [=](double d, double largest) { return d + 10 + log2_ceil(terms) - 9 * largest; });
  return reference::zip(reference::zip(reference::abs(x), reference::abs(y),
                                       [](double a, double b) { return 2 * a + 2 * b; }),
                        of_lse, std::plus<>());
}

}  // namespace braid::test
