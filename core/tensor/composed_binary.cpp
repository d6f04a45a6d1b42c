// Functions of ops/composed.hpp that take two tensors elementwise.
#include <braid/core/ops/composed.hpp>

#include <cmath>
#include <type_traits>

#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "ops/map.hpp"

namespace braid {
namespace {

/// Computes y = of(a, b), not recorded, and records it as one op. Each operand's gradient is
/// slope(dy, own, other, y) before it is summed over broadcast dims. If slope takes no y, y is not
/// kept, and may be changed in place.
template <class F, class G>
Tensor symmetric(const char* op, const Tensor& x, const Tensor& z, F of, G slope) {
  ops::check_together(op, {&x, &z});
  const ops::Pair p(op, x, z, true);
  Tensor y;
  {
    const NoGrad guard;
    y = ops::rounded_once(p.a->dtype(), [&](DType as) { return of(p.a->to(as), p.b->to(as)); });
  }
  if (!needs_grad({*p.a, *p.b})) return y;
  constexpr bool takes_y =
      std::is_invocable_v<G, const Tensor&, const Tensor&, const Tensor&, const Tensor&>;
  return record(op, {*p.a, *p.b}, y,
                [sa = SavedTensor(*p.a), sb = SavedTensor(*p.b),
                 sy = takes_y ? SavedTensor::output(y) : SavedTensor(Tensor()),
                 slope](const Tensor& dy, Needs needs) -> Grads {
                  const Tensor a = sa.get(), b = sb.get();
                  const auto part = [&](const Tensor& own, const Tensor& other) {
                    if constexpr (takes_y) return slope(dy, own, other, sy.get());
                    else return slope(dy, own, other);
                  };
                  return {needs[0] ? ops::sum_to(part(a, b), a.shape()) : Tensor(),
                          needs[1] ? ops::sum_to(part(b, a), b.shape()) : Tensor()};
                });
}

using T = const Tensor&;

}  // namespace

Tensor hypot(const Tensor& a, const Tensor& b) {
  return symmetric(
      "hypot", a, b,
      [](T x, T z) {
        const Tensor p = abs(x), q = abs(z), most = maximum(p, q);
        const Tensor scale = where((most == 0) | isinf(most), 1, most);
        return where(isinf(p) | isinf(q), INFINITY,
                     scale * sqrt(square(p / scale) + square(q / scale)));
      },
      [](T dy, T own, T, T y) {
        const Tensor none = y == 0;
        return where(none, 0, dy * own / where(none, 1, y));
      });
}
Tensor logaddexp(const Tensor& a, const Tensor& b) {
  return symmetric(
      "logaddexp", a, b,
      [](T x, T z) {
        const Tensor most = maximum(x, z);
        return where(isinf(most), most, most + log1p(exp(-abs(x - z))));
      },
      [](T dy, T own, T other) { return dy * sigmoid(own - other); });
}
Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  return symmetric(
      "logaddexp2", a, b,
      [](T x, T z) {
        const Tensor most = maximum(x, z);
        return where(isinf(most), most, most + log1p(exp2(-abs(x - z))) * M_LOG2E);
      },
      [](T dy, T own, T other) { return dy * sigmoid((own - other) * M_LN2); });
}
Tensor heaviside(const Tensor& x, const Tensor& values) {
  if (x.dtype() != values.dtype())
    throw DTypeError(
        str("heaviside: expected one dtype, got ", x.dtype(), " and ", values.dtype()));
  return where(x == 0, values, (x > 0).to(x.dtype()));
}
Tensor ldexp(const Tensor& a, const Tensor& b) {
  if (is_floating(b.dtype())) return a * exp2(b);
  // in float64, because 2^b alone may be too large for the dtype of the product
  const DType dtype = is_floating(a.dtype()) ? a.dtype() : DType::float32;
  return (a.to(DType::float64) * exp2(b.to(DType::float64))).to(dtype);
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  if (!(rtol >= 0)) throw ArgumentError(str("isclose: expected rtol >= 0, got ", rtol));
  if (!(atol >= 0)) throw ArgumentError(str("isclose: expected atol >= 0, got ", atol));
  ops::check_together("isclose", {&a, &b});
  Tensor close = a == b;
  if (!is_floating(promote(a.dtype(), b.dtype()))) {
    if (rtol == 0 && atol == 0) return close;  // not in float64, which rounds large integers
    return close | isclose(a.to(DType::float64), b.to(DType::float64), rtol, atol);
  }
  const Tensor distance = abs(a - b);
  close = close | (isfinite(distance) & (distance <= abs(b) * rtol + atol));
  return equal_nan ? close | (isnan(a) & isnan(b)) : close;
}

}  // namespace braid
