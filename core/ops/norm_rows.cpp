// Layer norm, RMS norm and group norm: contiguous rows, each with its own statistics.
#include <braid/core/ops/norm.hpp>

#include <limits>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/norm.hpp>

#include "norm.hpp"

namespace braid {
namespace ops {
namespace {

/// The rows of the kernel, of n elements each. Row i uses the weights of group i % groups, one
/// weight for every `inner` elements.
struct Rows {
  std::int64_t rows, n, groups, inner;
};

Grads norm_rows_backward(const char* op, const Tensor& x, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, const Tensor& gradient, const Rows& r,
                         const Shape& affine, Needs needs) {
  const Tensor dy = gradient.contiguous();
  Tensor dx, dweight, dbias;
  if (needs[0]) dx = make_tensor(x.shape(), x.dtype(), x.device());
  if (needs[1])
    dweight = x.numel() ? make_tensor(affine, x.dtype(), x.device())
                        : filled(affine, 0, x.dtype(), x.device());
  if (needs[2])
    dbias = x.numel() ? make_tensor(affine, x.dtype(), x.device())
                      : filled(affine, 0, x.dtype(), x.device());
  if (x.numel())
    launch(op, x.device(), &KernelTable::norm_rows_backward,
           NormRowsBackwardArgs{x.dtype(), mean.defined(), x.id()->data(), data_or_null(weight),
                                data_or_null(mean), rstd.id()->data(), dy.id()->data(),
                                data_or_null(dx), data_or_null(dweight), data_or_null(dbias),
                                r.rows, r.n, r.groups, r.inner});
  return {dx, dweight, dbias};
}

Tensor norm_rows(const char* op, const Tensor& input, const Tensor& weight_in,
                 const Tensor& bias_in, const Rows& r, const Shape& affine, bool center,
                 double eps) {
  const Tensor x = input.contiguous(), weight = dense_or_none(weight_in),
               bias = dense_or_none(bias_in);
  const DType t = statistics_type(x.dtype());
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  const Tensor mean = center ? make_tensor({r.rows}, t, x.device()) : Tensor(),
               rstd = make_tensor({r.rows}, t, x.device());
  if (x.numel())
    launch(op, x.device(), &KernelTable::norm_rows,
           NormRowsArgs{x.dtype(), center, x.id()->data(), data_or_null(weight), data_or_null(bias),
                        y.id()->data(), data_or_null(mean), rstd.id()->data(), eps, r.rows, r.n,
                        r.groups, r.inner});
  if (!needs_grad({x, weight, bias})) return y;
  return record(op, {x, weight, bias}, y,
                [op, sx = SavedTensor(x), sw = SavedTensor(weight), mean, rstd, r, affine, center,
                 eps](const Tensor& dy, Needs needs) -> Grads {
                  const Tensor saved = sx.get(), w = sw.get();
                  if (!needs_grad({saved, w, dy}))
                    return norm_rows_backward(op, saved, w, mean, rstd, dy, r, affine, needs);
                  const std::int64_t runs = r.inner > 0 ? r.n / r.inner : 0;
                  return composed_norm_backward(saved, w, dy,
                                                {{r.rows / r.groups, r.groups, runs, r.inner},
                                                 {2, 3},
                                                 {r.groups, runs, 1},
                                                 center,
                                                 eps},
                                                affine, needs);
                });
}

/// layer_norm and rms_norm, whose rows are the last dims.
Tensor norm_last(const char* op, const Tensor& x, const Shape& over, const Tensor& weight,
                 const Tensor& bias, bool center, double eps) {
  check_floating(op, x);
  if (over.rank() == 0)
    throw ShapeError(str(op, ": expected a normalized_shape of at least one dim, got []"));
  bool ends = over.rank() <= x.dim();
  for (int i = 0; ends && i < over.rank(); ++i)
    ends = x.shape()[x.dim() - over.rank() + i] == over[i];
  if (!ends)
    throw ShapeError(
        str(op, ": expected x that ends in normalized_shape ", over, ", got ", x.shape()));
  check_affine(op, "weight", x, weight, over);
  check_affine(op, "bias", x, bias, over);
  check_eps(op, eps);
  const std::int64_t n = over.numel();
  return norm_rows(op, x, weight, bias, {n > 0 ? x.numel() / n : 0, n, 1, 1}, over, center, eps);
}

/// The machine epsilon of the dtype that statistics are computed in.
double epsilon_of(DType t) {
  return t == DType::float64 ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

}  // namespace
}  // namespace ops

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return layer_norm(full(x), normalized_shape, full(weight), full(bias), eps);
  }
  return ops::norm_last("layer_norm", x, normalized_shape, weight, bias, true, eps);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return rms_norm(full(x), normalized_shape, full(weight), eps);
  }
  return ops::norm_last("rms_norm", x, normalized_shape, weight, {}, false,
                        eps.value_or(ops::epsilon_of(x.dtype())));
}

Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight,
                  const Tensor& bias, double eps) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return group_norm(full(x), num_groups, full(weight), full(bias), eps);
  }
  const char* op = "group_norm";
  ops::check_floating(op, x);
  if (x.dim() < 2) throw ShapeError(str(op, ": expected x [n, channels, ..], got ", x.shape()));
  if (num_groups < 1) throw ArgumentError(str(op, ": expected num_groups >= 1, got ", num_groups));
  const std::int64_t batch = x.shape()[0], channels = x.shape()[1];
  if (channels % num_groups != 0)
    throw ShapeError(
        str(op, ": expected channels that num_groups ", num_groups, " divides, got x ", x.shape()));
  ops::check_affine(op, "weight", x, weight, {channels});
  ops::check_affine(op, "bias", x, bias, {channels});
  ops::check_eps(op, eps);
  std::int64_t groups = 0;  // of all images; without channels it can exceed the number of elements
  if (__builtin_mul_overflow(batch, num_groups, &groups))
    throw ArgumentError(str(op, ": expected at most 2^63 - 1 groups in all, got ", num_groups,
                            " for x ", x.shape()));
  std::int64_t inner = 1;  // without elements, 0 or 1: the product of the sizes could overflow
  for (int d = 2; d < x.dim(); ++d) inner *= x.numel() == 0 ? x.shape()[d] != 0 : x.shape()[d];
  const std::int64_t n = channels / num_groups * inner;
  if (batch == 1 && n == 1)
    throw ArgumentError(str(op, ": expected more than one value a group, got x ", x.shape(), " in ",
                            num_groups, " groups"));
  return ops::norm_rows(op, x, weight, bias, {groups, n, num_groups, inner}, {channels}, true, eps);
}

}  // namespace braid
