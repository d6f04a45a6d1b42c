#pragma once
// The sizes and special values with which elementwise ops are tested beyond the table of ops.
#include "shorthand.hpp"

namespace braid::test::on_device {

/// Sizes that are not multiples of vectors.
inline std::vector<std::int64_t> sizes() {
  return {0,  1,   2,   7,   8,    9,    15,
          16, 17,  31,  32,  33,   63,   64,
          65, 127, 128, 129, 1000, 1025, cut(20011, 5003)};
}

/// Whether both are NaN, infinite or zero with the same sign, or finite and close to each other.
inline bool same_class(double got, double want, DType t, bool sign_of_zero) {
  if (std::isnan(want)) return std::isnan(got);
  if (want == 0 && got == 0 && sign_of_zero) return std::signbit(got) == std::signbit(want);
  if (std::isinf(want)) return got == want;
  const double rounded = reference::round_to(want, format_of(t));
  if (rounded == 0 || std::isinf(rounded))
    return std::fabs(got - rounded) <= 4 * reference::ulp(0, format_of(t)) || got == rounded;
  return std::fabs(got - want) <= 4 * reference::ulp(want, format_of(t));
}

/// Returns NaN, infinities, zeros, subnormals, the largest numbers and others.
inline List specials(DType t) {
  const reference::Format f = format_of(t);
  const double smallest = std::ldexp(1.0, f.min_exponent),
               largest = std::ldexp(2 - std::ldexp(1.0, 1 - f.precision), f.max_exponent);
  List list{kNan, kInf, 0.0, smallest, largest, 1.0, 0.5, 1.5, 2.5, 100.0};
  // float16 subnormals are computed in float32, where they are normal
  if (t != DType::float16) list.push_back(std::ldexp(1.0, f.min_exponent - f.precision + 1));
  for (std::size_t i = 0, n = list.size(); i < n; ++i) list.push_back(-list[i]);
  return list;
}

}  // namespace braid::test::on_device
