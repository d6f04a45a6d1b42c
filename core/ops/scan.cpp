// Cumulative sums and products. Their gradients are cumulative sums and linear recurrences in the
// opposite direction, and so are the gradients of these.
#include <braid/core/ops/scan.hpp>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/scan.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"
#include "map.hpp"

namespace braid {
namespace {

/// Not recorded. Requires a contiguous x and, if it is defined, a contiguous a.
Tensor scan(const char* op, ScanOp kind, const Tensor& x, const Tensor& a, int d, bool reverse) {
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  if (y.numel() == 0) return y;
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < d; ++i) outer *= x.shape()[i];
  for (int i = d + 1; i < x.dim(); ++i) inner *= x.shape()[i];
  launch(op, x.device(), &KernelTable::scan,
         ScanArgs{kind, x.dtype(), x.id()->data(), a.defined() ? a.id()->data() : nullptr,
                  y.id()->data(), outer, x.shape()[d], inner, reverse});
  return y;
}

/// Shifts t by one along d: element j of the result is element j + 1 of t with `next`, else j - 1.
/// The element at the free end is `rest`.
Tensor shifted(const Tensor& t, int d, bool next, double rest) {
  const std::int64_t n = t.shape()[d];
  if (n == 0) return t;
  Shape one = t.shape();
  one[d] = 1;
  const Tensor edge = ops::filled(one, rest, t.dtype(), t.device()),
               kept = t.narrow(d, next ? 1 : 0, n - 1);
  return next ? cat({kept, edge}, d) : cat({edge, kept}, d);
}

Tensor running_sum(const Tensor& a, int d, bool reverse) {
  const Tensor x = a.contiguous();
  Tensor y = scan("cumsum", ScanOp::sum, x, {}, d, reverse);
  if (!needs_grad({x})) return y;
  return record("cumsum", {x}, y,
                [d, reverse](const Tensor& dy) -> Grads { return {running_sum(dy, d, !reverse)}; });
}

/// Computes y_j = a_j y_{j-1} + x_j. The gradients use g_j = dy_j + a_{j+1} g_{j+1}, which is the
/// same recurrence in the opposite direction: dx = g, da_j = g_j y_{j-1}.
Tensor recurrence(const Tensor& factor, const Tensor& term, int d, bool reverse) {
  const Tensor a = factor.contiguous(), x = term.contiguous();
  Tensor y = scan("recurrence", ScanOp::recurrence, x, a, d, reverse);
  if (!needs_grad({a, x})) return y;
  return record("recurrence", {a, x}, y,
                [sa = SavedTensor(a), sy = SavedTensor::output(y), d, reverse](
                    const Tensor& dy, Needs needs) -> Grads {
                  const Tensor g = recurrence(shifted(sa.get(), d, !reverse, 0), dy, d, !reverse);
                  return {needs[0] ? g * shifted(sy.get(), d, reverse, 0) : Tensor(), g};
                });
}

Tensor running_product(const Tensor& a, int d) {
  const Tensor x = a.contiguous();
  Tensor y = scan("cumprod", ScanOp::prod, x, {}, d, false);
  if (!needs_grad({x})) return y;
  return record("cumprod", {x}, y,
                [sx = SavedTensor(x), sy = SavedTensor::output(y), d](const Tensor& dy) -> Grads {
                  return {shifted(sy.get(), d, false, 1) *
                          recurrence(shifted(sx.get(), d, true, 0), dy, d, true)};
                });
}

/// Calls f(x, d), with integers as int64 and a scalar as a vector of one element.
template <class F> Tensor along(const char* op, const Tensor& x, std::int64_t dim, F f) {
  const int d = wrap_dim(op, dim, x.dim());
  const Tensor t = is_floating(x.dtype()) ? x : x.to(DType::int64);
  return x.dim() == 0 ? f(t.reshape({1}), 0).reshape({}) : f(t, d);
}

}  // namespace

Tensor cumsum(const Tensor& x, std::int64_t dim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return cumsum(full(x), dim);
  }
  return along("cumsum", x, dim, [](const Tensor& t, int d) { return running_sum(t, d, false); });
}

Tensor cumprod(const Tensor& x, std::int64_t dim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return cumprod(full(x), dim);
  }
  return along("cumprod", x, dim, [](const Tensor& t, int d) { return running_product(t, d); });
}

Tensor prod(const Tensor& x, const IntList& dims, bool keepdim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return prod(full(x), dims, keepdim);
  }
  const ops::ReducedDims plan("prod", x, dims);
  const Shape shape = keepdim ? plan.kept_dims : plan.kept;
  if (plan.count == 0) return add(sum(x, dims, keepdim), 1);
  // Moves the reduced dims to the end, and merges them into one.
  Shape order, flat = plan.kept;
  for (int d = 0; d < x.dim(); ++d)
    if (!plan.over[d]) order.push_back(d);
  for (int d = 0; d < x.dim(); ++d)
    if (plan.over[d]) order.push_back(d);
  flat.push_back(plan.count);  // at least one dim is reduced, so the rank is not too large
  // 16 bits need not hold the products of some of the elements, which the gradient is made of
  return ops::rounded_once(x.dtype(), [&](DType t) {
    const Tensor rows = x.permute(order).reshape(flat).to(t);
    return cumprod(rows, -1).select(-1, plan.count - 1).clone().reshape(shape);
  });
}

}  // namespace braid
