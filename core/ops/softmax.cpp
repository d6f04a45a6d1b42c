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

/// Softmax over dim d of a tensor that has one. The kernel computes rows, so that d is moved to the
/// end; the result is contiguous.
Tensor softmax_over(const char* op, const Tensor& x, int d, bool log) {
  const bool last = d == x.dim() - 1;
  Tensor y;
  {
    const NoGrad guard;
    const Tensor rows = (last ? x : x.transpose(d, -1)).contiguous();
    y = make_tensor(rows.shape(), x.dtype(), x.device());
    if (rows.numel() != 0) {
      const std::int64_t n = rows.shape().back();
      launch(op, x.device(), &KernelTable::softmax,
             SoftmaxArgs{x.dtype(), log, rows.id()->data(), y.id()->data(), x.numel() / n, n});
    }
    if (!last) {
      const Tensor moved = y.transpose(d, -1);
      y = make_tensor(x.shape(), x.dtype(), x.device());
      copy_values(y, moved);
    }
  }
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [y = SavedTensor::output(y), d, last, log](const Tensor& dy) -> Grads {
    if (last) return {softmax_backward(y.get(), dy, log)};
    return {softmax_backward(y.get().transpose(d, -1), dy.transpose(d, -1), log).transpose(d, -1)};
  });
}

Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim, bool log) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return softmax_along(op, full(x), dim, log);
  }
  check_floating(op, x);
  const int d = wrap_dim(op, dim, x.dim());
  if (x.dim() == 0) return softmax_over(op, x.reshape({1}), 0, log).reshape({});
  return softmax_over(op, x, d, log);
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
