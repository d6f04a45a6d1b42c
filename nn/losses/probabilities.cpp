#include <numbers>

#include <braid/core/autograd.hpp>

#include "terms.hpp"

namespace braid::nn {

namespace {

/// log(p), clamped at -100 from below.
Tensor log_from_100(const Tensor& p) { return maximum(log(p), detail::number(p, -100)); }
/// log(1 - p), clamped in the same way. 1 - p would lose the digits of a small p.
Tensor log_of_rest_from_100(const Tensor& p) {
  return maximum(log1p(neg(p)), detail::number(p, -100));
}

/// Binary cross entropy without the weight. Its gradient is not that of the clamped formula, which
/// is 0/0 where p is 0 or 1, but (p - t) / (p (1 - p)) with the divisor at least 1e-12, as in
/// PyTorch.
Tensor bce_of(const Tensor& p, const Tensor& t) {
  const Tensor y = [&] {
    const NoGrad guard;
    return neg(t * log_from_100(p) + sub(1, t) * log_of_rest_from_100(p));
  }();
  if (!needs_grad({p, t})) return y;
  return record("binary_cross_entropy", {p, t}, y,
                [sp = SavedTensor(p), st = SavedTensor(t)](const Tensor& dy, Needs needs) -> Grads {
                  const Tensor prob = sp.get(), target = st.get();
                  Tensor dp, dt;
                  if (needs[0])
                    dp = dy * (prob - target) /
                         maximum(prob * sub(1, prob), detail::number(prob, 1e-12));
                  if (needs[1]) dt = dy * (log_of_rest_from_100(prob) - log_from_100(prob));
                  return {dp, dt};
                });
}

Tensor bce_terms(const Tensor& p, const Tensor& t, const BceOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return bce_terms(full(p), full(t), o);
  }
  detail::check_same("binary_cross_entropy", "target", p, t);
  detail::check_weight("binary_cross_entropy", "weight", p, o.weight);
  const Tensor terms = bce_of(p, t);
  return o.weight.defined() ? terms * o.weight : terms;
}

Tensor bce_with_logits_terms(const Tensor& x, const Tensor& t, const BceWithLogitsOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return bce_with_logits_terms(full(x), full(t), o);
  }
  constexpr const char* op = "binary_cross_entropy_with_logits";
  detail::check_same(op, "target", x, t);
  detail::check_weight(op, "weight", x, o.weight);
  detail::check_weight(op, "pos_weight", x, o.pos_weight);
  Tensor rest = detail::log1p_exp(neg(x));
  if (o.pos_weight.defined()) rest = rest * add(sub(o.pos_weight, 1) * t, 1);
  const Tensor terms = sub(1, t) * x + rest;
  return o.weight.defined() ? terms * o.weight : terms;
}

Tensor kl_terms(const Tensor& x, const Tensor& t, const KlDivOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return kl_terms(full(x), full(t), o);
  }
  detail::check_same("kl_div", "target", x, t);
  if (o.batch_mean && x.dim() == 0)
    throw ShapeError("kl_div: expected a tensor with a batch for batch_mean, got a scalar");
  if (o.log_target) return exp(t) * (t - x);
  // avoids NaN from 0 · log 0, also in the gradient
  const Tensor positive = where(eq(t, 0.0), detail::number(t, 1), t);
  return t * (log(positive) - x);
}

Tensor poisson_terms(const Tensor& x, const Tensor& t, const PoissonNllOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return poisson_terms(full(x), full(t), o);
  }
  detail::check_same("poisson_nll_loss", "target", x, t);
  detail::check_option("poisson_nll_loss", "eps >= 0", o.eps >= 0 && !std::isinf(o.eps), o.eps);
  const Tensor terms = o.log_input ? exp(x) - t * x : x - t * log(add(x, o.eps));
  if (!o.full) return terms;
  const Tensor large = gt(t, 1.0), safe = where(large, t, detail::number(t, 1));
  const Tensor stirling = safe * log(safe) - safe + mul(log(mul(safe, 2 * std::numbers::pi)), 0.5);
  return terms + where(large, stirling, detail::number(t, 0));
}

Tensor gaussian_terms(const Tensor& x, const Tensor& t, const Tensor& variance,
                      const GaussianNllOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return gaussian_terms(full(x), full(t), full(variance), o);
  }
  detail::check_same("gaussian_nll_loss", "target", x, t);
  detail::check_option("gaussian_nll_loss", "eps > 0", o.eps > 0 && !std::isinf(o.eps), o.eps);
  detail::check_alike("gaussian_nll_loss", "variance", x, variance);
  Shape narrow = x.shape();
  if (x.dim() > 0) narrow[x.dim() - 1] = 1;
  if (variance.shape() != x.shape() && variance.shape() != narrow)
    throw ShapeError(str("gaussian_nll_loss: expected variance of shape ", x.shape(), " or ",
                         narrow, ", got ", variance.shape()));
  if (any(lt(variance, 0)).item<bool>())
    throw ArgumentError("gaussian_nll_loss: expected a variance >= 0, got a negative one");
  const Tensor v = maximum(variance, detail::number(variance, o.eps));
  const Tensor terms = mul(log(v) + square(x - t) / v, 0.5);
  return o.full ? add(terms, 0.5 * std::log(2 * std::numbers::pi)) : terms;
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, const BceOptions& o) {
  return detail::joined(bce_terms(p, target, o), o.reduction);
}
LossSum binary_cross_entropy(SumAndCount, const Tensor& p, const Tensor& target,
                             const BceOptions& o) {
  return detail::counted(bce_terms(p, target, o));
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        const BceWithLogitsOptions& o) {
  return detail::joined(bce_with_logits_terms(x, target, o), o.reduction);
}
LossSum binary_cross_entropy_with_logits(SumAndCount, const Tensor& x, const Tensor& target,
                                         const BceWithLogitsOptions& o) {
  return detail::counted(bce_with_logits_terms(x, target, o));
}

Tensor kl_div(const Tensor& x, const Tensor& target, const KlDivOptions& o) {
  const Tensor terms = kl_terms(x, target, o);
  return o.batch_mean ? div(sum(terms), static_cast<double>(x.size(0)))
                      : detail::joined(terms, o.reduction);
}
LossSum kl_div(SumAndCount, const Tensor& x, const Tensor& target, const KlDivOptions& o) {
  LossSum all = detail::counted(kl_terms(x, target, o));
  if (o.batch_mean)
    all.count = full({}, static_cast<double>(x.size(0)),
                     {.device = x.device(), .dtype = all.count.dtype()});
  return all;
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllOptions& o) {
  return detail::joined(poisson_terms(x, target, o), o.reduction);
}
LossSum poisson_nll_loss(SumAndCount, const Tensor& x, const Tensor& target,
                         const PoissonNllOptions& o) {
  return detail::counted(poisson_terms(x, target, o));
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& variance,
                         const GaussianNllOptions& o) {
  return detail::joined(gaussian_terms(x, target, variance, o), o.reduction);
}
LossSum gaussian_nll_loss(SumAndCount, const Tensor& x, const Tensor& target,
                          const Tensor& variance, const GaussianNllOptions& o) {
  return detail::counted(gaussian_terms(x, target, variance, o));
}

}  // namespace braid::nn
