#pragma once
// Shared by clamp, masked_fill and their in-place forms.
#include <optional>

#include "common.hpp"

namespace braid::ops {

/// Throws unless the mask is bool, on x's device and broadcasts with x.
void check_mask(const char* op, const Tensor& x, const Tensor& mask);

struct Bounds {
  double low = 0, high = 0;          ///< for floating types
  std::int64_t least = 0, most = 0;  ///< for integers
};
/// Returns the bounds for x's dtype. A missing bound is an infinity for floating types, and the
/// type's smallest or largest value for integers. If one floating bound is NaN, both become NaN.
/// Throws ArgumentError if both are missing, DTypeError for bool.
[[nodiscard]] Bounds clamp_bounds(const char* op, const Tensor& x, const std::optional<Scalar>& min,
                                  const std::optional<Scalar>& max);
/// Clamps x, which has a floating dtype. Recorded.
[[nodiscard]] Tensor clamp_values(const Tensor& x, Bounds b);
/// Sets out to x clamped to the bounds. Both have the same integer dtype and shape; out may be x.
void clamp_integers(const char* op, const Tensor& out, const Tensor& x, Bounds b);
/// Clamps t, which has a floating dtype, in place. Not recorded.
void clamp_in_place(const Tensor& t, Bounds b);

}  // namespace braid::ops
