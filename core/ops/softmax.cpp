#include <braid/core/ops/softmax.hpp>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/softmax.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid {
namespace ops {

Tensor softmax_backward(const Tensor& y, const Tensor& dy, bool log) {
  const Tensor u = y.contiguous(), g = dy.contiguous();
  Tensor dx = make_tensor(u.shape(), u.dtype(), u.device());
  if (u.numel()) {
    const std::int64_t n = u.shape().back();
    launch("softmax_backward", u.device(), &KernelTable::softmax_backward,
           SoftmaxBackwardArgs{u.dtype(), log, u.id()->data(), g.id()->data(), dx.id()->data(),
                               u.numel() / n, n});
  }
  if (!needs_grad({u, g})) return dx;
  return record(
      "softmax_backward", {u, g}, dx,
      [su = SavedTensor(u), sg = SavedTensor(g), log](const Tensor& ddx, Needs needs) -> Grads {
        const Tensor s = su.get(), d = sg.get();
        if (log) {  // dx = d - exp(s) Σ d
          const Tensor p = exp(s), dot = sum(ddx * p, {-1}, true);
          return {needs[0] ? neg(ddx * p * sum(d, {-1}, true)) : Tensor(),
                  needs[1] ? ddx - dot : Tensor()};
        }
        const Tensor dot = sum(ddx * s, {-1}, true);  // dx = s (d - Σ s d)
        return {needs[0] ? ddx * (d - sum(s * d, {-1}, true)) - d * dot : Tensor(),
                needs[1] ? s * (ddx - dot) : Tensor()};
      });
}

namespace {

Tensor softmax_last(const char* op, const Tensor& a, bool log) {
  const Tensor x = a.contiguous();
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  if (x.numel()) {
    const std::int64_t n = x.shape().back();
    launch(op, x.device(), &KernelTable::softmax,
           SoftmaxArgs{x.dtype(), log, x.id()->data(), y.id()->data(), x.numel() / n, n});
  }
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [y = SavedTensor::output(y), log](const Tensor& dy) -> Grads {
    return {softmax_backward(y.get(), dy, log)};
  });
}

Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim, bool log) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return softmax_along(op, full(x), dim, log);
  }
  check_floating(op, x);
  if (x.dim() == 0) throw ShapeError(str(op, ": expected rank >= 1, got rank 0"));
  const int d = wrap_dim(op, dim, x.dim());
  if (d == x.dim() - 1) return softmax_last(op, x, log);
  return softmax_last(op, x.transpose(d, -1), log).transpose(d, -1);
}

}  // namespace
}  // namespace ops

Tensor softmax(const Tensor& x, std::int64_t dim) {
  return ops::softmax_along("softmax", x, dim, false);
}
Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return ops::softmax_along("log_softmax", x, dim, true);
}

}  // namespace braid
