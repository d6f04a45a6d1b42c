// Variance, log-sum-exp and norms, composed of other reductions. The forward is not recorded, and
// uses float32 for 16-bit types. The gradient is one formula.
#include <braid/core/ops/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid {
namespace {

Tensor widened(const Tensor& x) { return size_of(x.dtype()) == 2 ? x.to(DType::float32) : x; }
Tensor zero_like(const Tensor& t) { return ops::filled({}, 0, t.dtype(), t.device()); }
Tensor one_like(const Tensor& t) { return ops::filled({}, 1, t.dtype(), t.device()); }
/// Returns y with 1 in place of 0, as a divisor: the quotients and their derivatives are finite.
Tensor without_zeros(const Tensor& y) { return where(eq(y, 0), one_like(y), y); }

/// Rounds `wide`, which was computed from widened(x), to x's dtype, and records the gradient
/// dx = of(x, y, dy), or of(x, dy), which lets y be changed in place. The arguments of `of` are
/// widened; y and dy have the reduced dims as 1.
template <class F>
Tensor finished(const char* op, const Tensor& x, const Tensor& wide, const ops::ReducedDims& plan,
                bool keepdim, F of) {
  Tensor y = ops::own_result(wide.reshape(keepdim ? plan.kept_dims : plan.kept).to(x.dtype()));
  if (!needs_grad({x})) return y;
  constexpr bool takes_y = std::is_invocable_v<F, const Tensor&, const Tensor&, const Tensor&>;
  return record(op, {x}, y,
                [sx = SavedTensor(x), sy = takes_y ? SavedTensor::output(y) : SavedTensor(Tensor()),
                 kept = plan.kept_dims, of](const Tensor& dy) -> Grads {
                  const Tensor t = widened(sx.get()), dt = widened(dy.reshape(kept));
                  if constexpr (takes_y)
                    return {of(t, widened(sy.get().reshape(kept)), dt).to(dy.dtype())};
                  else return {of(t, dt).to(dy.dtype())};
                });
}

struct Spread {
  Spread(const char* op, const Tensor& x, const IntList& dims_, double correction)
      : plan(checked(op, x), x, dims_), dims(dims_.span()) {
    const NoGrad guard;
    scale = 1 / std::max(0.0, static_cast<double>(plan.count) - correction);
    const Tensor wide = widened(x);
    mean = braid::mean(wide, dims, true);
    var = mul(sum(square(wide - mean), dims, true), scale);
  }
  static const char* checked(const char* op, const Tensor& x) {
    ops::check_floating(op, x);
    return op;
  }
  [[nodiscard]] Tensor recorded_var(const char* op, const Tensor& x, bool keepdim) const {
    return finished(op, x, var, plan, keepdim,
                    [dims = dims, scale = scale](const Tensor& t, const Tensor& dy) {
                      return mul(t - braid::mean(t, dims, true), 2 * scale) * dy;
                    });
  }
  ops::ReducedDims plan;
  Shape dims;
  double scale = 0;
  Tensor mean, var;  ///< reduced dims as 1, widened
};

}  // namespace

Tensor detail::var(const Tensor& x, const IntList& dims, double correction, bool keepdim) {
  return Spread("var", x, dims, correction).recorded_var("var", x, keepdim);
}

Tensor detail::std(const Tensor& x, const IntList& dims, double correction, bool keepdim) {
  const Spread s("std", x, dims, correction);
  const Tensor root = [&] {
    const NoGrad guard;
    return sqrt(s.var);
  }();
  return finished(
      "std", x, root, s.plan, keepdim,
      [dims = s.dims, scale = s.scale](const Tensor& t, const Tensor& y, const Tensor& dy) {
        const Tensor factor = where(eq(y, 0), zero_like(y), dy / without_zeros(y));
        return mul(t - mean(t, dims, true), scale) * factor;
      });
}

VarMean detail::var_mean(const Tensor& x, const IntList& dims, double correction, bool keepdim) {
  const Spread s("var_mean", x, dims, correction);
  return {s.recorded_var("var_mean", x, keepdim),
          finished("var_mean", x, s.mean, s.plan, keepdim,
                   [n = static_cast<double>(s.plan.count)](const Tensor& t, const Tensor& dy) {
                     return div(dy, n).expand(t.shape());
                   })};
}

Tensor logsumexp(const Tensor& x, const IntList& dims, bool keepdim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return logsumexp(full(x), dims, keepdim);
  }
  ops::check_floating("logsumexp", x);
  const ops::ReducedDims plan("logsumexp", x, dims);
  const auto forward = [&] {
    const NoGrad guard;
    const Tensor t = widened(x);
    if (plan.count == 0) return log(sum(t, dims, true));
    const Tensor largest = amax(t, dims, true);
    // no shift by an infinity, because inf - inf is NaN
    const Tensor shift =
        where(eq(abs(largest), std::numeric_limits<double>::infinity()), zero_like(t), largest);
    return log(sum(exp(t - shift), dims, true)) + shift;
  };
  return finished(
      "logsumexp", x, forward(), plan, keepdim,
      [](const Tensor& t, const Tensor& y, const Tensor& dy) {
        return exp(t - where(eq(y, -std::numeric_limits<double>::infinity()), zero_like(y), y)) *
               dy;
      });
}

Tensor norm(const Tensor& x, double p, const IntList& dims, bool keepdim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return norm(full(x), p, dims, keepdim);
  }
  ops::check_floating("norm", x);
  if (std::isnan(p)) throw ArgumentError("norm: expected a number p, got nan");
  const ops::ReducedDims plan("norm", x, dims);
  if (p == 0) return count_nonzero(x, dims, keepdim).to(x.dtype());
  if (std::isinf(p)) return p > 0 ? amax(abs(x), dims, keepdim) : amin(abs(x), dims, keepdim);
  const auto forward = [&] {
    const NoGrad guard;
    const Tensor t = widened(x);
    if (p == 1) return sum(abs(t), dims, true);
    if (p == 2) return sqrt(sum(square(t), dims, true));
    return pow(sum(pow(abs(t), p), dims, true), 1 / p);
  };
  return finished(
      "norm", x, forward(), plan, keepdim, [p](const Tensor& t, const Tensor& y, const Tensor& dy) {
        if (p == 1) return sign(t) * dy;
        if (p == 2) return t * (dy / without_zeros(y));
        const Tensor zero = zero_like(t), none = eq(t, 0);
        const Tensor power = where(none, zero, pow(without_zeros(abs(t)), p - 1));
        return sign(t) * power * where(eq(y, 0), zero, dy * pow(without_zeros(y), 1 - p));
      });
}

}  // namespace braid
