#include <optional>

#include "terms.hpp"

namespace braid::nn {
namespace {

Tensor l1_terms(const Tensor& a, const Tensor& b) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return l1_terms(full(a), full(b));
  }
  detail::check_same("l1_loss", "b", a, b);
  return abs(a - b);
}

/// d², with d clamped to `limit`: an infinite d would make d² infinite, and its gradient of 0 would
/// become NaN.
Tensor square_below(const Tensor& d, double limit) { return square(clamp(d, std::nullopt, limit)); }

Tensor smooth_l1_terms(const Tensor& a, const Tensor& b, double beta) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return smooth_l1_terms(full(a), full(b), beta);
  }
  detail::check_same("smooth_l1_loss", "b", a, b);
  detail::check_option("smooth_l1_loss", "beta >= 0", beta >= 0 && !std::isinf(beta), beta);
  const Tensor d = abs(a - b);
  return beta == 0 ? d
                   : where(lt(d, beta), mul(square_below(d, beta), 0.5 / beta), sub(d, beta / 2));
}

Tensor huber_terms(const Tensor& a, const Tensor& b, double delta) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return huber_terms(full(a), full(b), delta);
  }
  detail::check_same("huber_loss", "b", a, b);
  detail::check_option("huber_loss", "delta > 0", delta > 0 && !std::isinf(delta), delta);
  const Tensor d = abs(a - b);
  return where(lt(d, delta), mul(square_below(d, delta), 0.5), mul(sub(d, delta / 2), delta));
}

}  // namespace

Tensor l1_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  return detail::joined(l1_terms(a, b), reduction);
}
LossSum l1_loss(SumAndCount, const Tensor& a, const Tensor& b) {
  return detail::counted(l1_terms(a, b));
}

Tensor smooth_l1_loss(const Tensor& a, const Tensor& b, const SmoothL1Options& o) {
  return detail::joined(smooth_l1_terms(a, b, o.beta), o.reduction);
}
LossSum smooth_l1_loss(SumAndCount, const Tensor& a, const Tensor& b, const SmoothL1Options& o) {
  return detail::counted(smooth_l1_terms(a, b, o.beta));
}

Tensor huber_loss(const Tensor& a, const Tensor& b, const HuberOptions& o) {
  return detail::joined(huber_terms(a, b, o.delta), o.reduction);
}
LossSum huber_loss(SumAndCount, const Tensor& a, const Tensor& b, const HuberOptions& o) {
  return detail::counted(huber_terms(a, b, o.delta));
}

}  // namespace braid::nn
