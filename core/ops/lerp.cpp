// Weighted sums of three tensors, composed of products and sums.
#include <braid/core/ops/lerp.hpp>

#include <cmath>

#include <braid/core/ops/elementwise.hpp>

#include "map.hpp"

namespace braid {
namespace {

/// Linear interpolation. x + w d is exact at w = 0, y - d (1 - w) at w = 1, so each is used for the
/// w that are closer to it. The gradient is the same for both.
Tensor weighted(const Tensor& x, const Tensor& y, const Tensor& w) {
  const Tensor mean = [&] {
    const NoGrad guard;
    const Tensor d = y - x;
    return where(lt(abs(w), 0.5), x + w * d, y - d * sub(1, w));
  }();
  if (!needs_grad({x, y, w})) return mean;
  return record("lerp", {x, y, w}, mean,
                [sx = ops::saved_for({w}, x), sy = ops::saved_for({w}, y),
                 sw = ops::saved_for({x, y}, w), of_x = x.shape(), of_y = y.shape(),
                 of_w = w.shape()](const Tensor& dy, Needs needs) -> Grads {
                  const Tensor by = sw.get();
                  return {needs[0] ? ops::sum_to(dy * sub(1, by), of_x) : Tensor(),
                          needs[1] ? ops::sum_to(dy * by, of_y) : Tensor(),
                          needs[2] ? ops::sum_to(dy * (sy.get() - sx.get()), of_w) : Tensor()};
                });
}

}  // namespace

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  ops::check_together("lerp", {&a, &b});
  ops::check_floating("lerp", a);
  ops::check_floating("lerp", b);
  return ops::rounded_once(promote(a.dtype(), b.dtype()), [&](DType as) {
    const Tensor x = a.to(as), y = b.to(as), d = y - x;
    return std::fabs(weight) < 0.5 ? add(x, d, weight) : sub(y, d, 1 - weight);
  });
}
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  ops::check_together("lerp", {&a, &b, &weight});
  for (const Tensor* t : {&a, &b, &weight}) ops::check_floating("lerp", *t);
  const Device device = ops::common_device({&a, &b, &weight});
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  return ops::rounded_once(dtype, [&](DType as) {
    const auto at = [&](const Tensor& t) { return ops::beside("lerp", t, device).to(as); };
    return weighted(at(a), at(b), at(weight));
  });
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  ops::check_together("addcmul", {&x, &a, &b});
  const DType dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
  if (!is_floating(dtype) && !value.is_whole())
    throw DTypeError(str("addcmul: expected a whole value for ", dtype, ", got ", value));
  return ops::rounded_once(dtype,
                           [&](DType as) { return add(x.to(as), a.to(as) * b.to(as), value); });
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  ops::check_together("addcdiv", {&x, &a, &b});
  const DType dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
  return ops::rounded_once(dtype,
                           [&](DType as) { return add(x.to(as), a.to(as) / b.to(as), value); });
}

}  // namespace braid
