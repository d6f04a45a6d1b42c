#pragma once
// What clamp, masked_fill and their twins in place share.
#include <optional>

#include "common.hpp"

namespace braid::ops {

/// Throws unless the mask is bool, on x's device and broadcasts with x.
void check_mask(const char* op, const Tensor& x, const Tensor& mask);

struct Bounds {
  double low = 0, high = 0;          ///< of floating types
  std::int64_t least = 0, most = 0;  ///< of integers
};
/// The bounds as x's dtype takes them: of floating types infinities where one is missing, both NaN
/// if one is; of integers the ends of the type. Throws ArgumentError if both are missing,
/// DTypeError for bool.
[[nodiscard]] Bounds clamp_bounds(const char* op, const Tensor& x, const std::optional<Scalar>& min,
                                  const std::optional<Scalar>& max);
/// Floating point; recorded.
[[nodiscard]] Tensor clamp_values(const Tensor& x, Bounds b);
/// out = x between the bounds, both of one integer dtype and shape; out may be x.
void clamp_integers(const char* op, const Tensor& out, const Tensor& x, Bounds b);
/// t = t between the bounds, floating point, without history.
void clamp_in_place(const Tensor& t, Bounds b);

}  // namespace braid::ops
