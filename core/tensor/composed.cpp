// Functions that are a few ops in a row.
#include <braid/core/ops/composed.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <braid/core/error.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/diagonal.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/ops/special.hpp>
#include <braid/core/ops/statistics.hpp>

#include "ops/map.hpp"

namespace braid {
namespace {

/// The number as a tensor of the result's dtype, so that it does not wrap around in that of t.
Tensor number_for(const Tensor& t, const Scalar& number) {
  return ops::filled({}, number, is_floating(t.dtype()) ? t.dtype() : DType::float32, t.device());
}

}  // namespace

Tensor positive(const Tensor& x) {
  if (x.dtype() == DType::bool_) throw DTypeError("positive: expected numbers, got bool");
  return x;
}
Tensor deg2rad(const Tensor& x) { return x * (M_PI / 180); }
Tensor rad2deg(const Tensor& x) { return x * (180 / M_PI); }
Tensor sgn(const Tensor& x) { return x.dtype() == DType::bool_ ? x.clone() : sign(x); }
Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return sub(b, a, alpha); }
Tensor float_power(const Tensor& x, const Tensor& exponent) {
  return pow(x.to(DType::float64), exponent);
}
Tensor float_power(const Tensor& x, const Scalar& exponent) {
  return pow(x.to(DType::float64), exponent.to_double());
}
Tensor xlogy(const Tensor& x, const Scalar& y) { return xlogy(x, number_for(x, y)); }
Tensor xlogy(const Scalar& x, const Tensor& y) { return xlogy(number_for(y, x), y); }
Tensor isposinf(const Tensor& x) { return isinf(x) & (x > 0); }
Tensor isneginf(const Tensor& x) { return isinf(x) & (x < 0); }
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x.clone();
  constexpr double kFloat32Max = std::numeric_limits<float>::max();
  const double most = x.dtype() == DType::float16    ? 65504
                      : x.dtype() == DType::bfloat16 ? 0x1.fep127
                      : x.dtype() == DType::float32  ? kFloat32Max
                                                     : std::numeric_limits<double>::max();
  // float32 and narrower types: rounded as a conversion to float32 rounds
  const auto fit = [&](double value) {
    if (x.dtype() == DType::float64 || !(std::abs(value) > kFloat32Max)) return value;
    return std::copysign(std::abs(value) < 0x1.ffffffp127 ? kFloat32Max : INFINITY, value);
  };
  const Tensor finite = masked_fill(masked_fill(x, isposinf(x), fit(posinf.value_or(most))),
                                    isneginf(x), fit(neginf.value_or(-most)));
  return masked_fill(finite, isnan(x), fit(nan));
}
Tensor round(const Tensor& x, std::int64_t decimals) {
  const double scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
  return ops::rounded_once(x.dtype(), [&](DType as) {
    const Tensor z = x.to(as);
    return decimals < 0 ? round(z / scale) * scale : round(z * scale) / scale;
  });
}
Tensor glu(const Tensor& x, std::int64_t dim) {
  const std::vector<Tensor> halves = split(x, {x.size(dim) / 2, x.size(dim) / 2}, dim);
  return halves[0] * sigmoid(halves[1]);
}
Tensor hardshrink(const Tensor& x, double lambda) {
  return masked_fill(x, (x >= -lambda) & (x <= lambda), 0);
}
Tensor softshrink(const Tensor& x, double lambda) {
  if (!(lambda >= 0)) throw ArgumentError(str("softshrink: expected lambda >= 0, got ", lambda));
  return masked_fill(x - clamp(x, -lambda, lambda), (x >= -lambda) & (x <= lambda), 0);
}
Tensor tanhshrink(const Tensor& x) { return x - tanh(x); }
Tensor threshold(const Tensor& x, double threshold, double value) {
  return masked_fill(x, x <= threshold, value);
}
Tensor prelu(const Tensor& x, const Tensor& weight) {
  const std::int64_t channels = x.dim() > 1 ? x.shape()[1] : 1;
  if (weight.dim() > 1 || (weight.numel() != 1 && weight.numel() != channels))
    throw ShapeError(str("prelu: expected a weight of 1 element or of ", channels,
                         ", one for each index of dim 1 of ", x.shape(), ", got ", weight.shape()));
  Shape shape = Shape::filled(x.dim(), 1);
  if (x.dim() > 1) shape[1] = weight.numel();
  const Tensor kept = x > 0;  // what the weight does not multiply must not reach its gradient
  return where(kept, x, weight.reshape(shape) * masked_fill(x, kept, 0));
}
Tensor softmin(const Tensor& x, std::int64_t dim) { return softmax(-x, dim); }
Tensor log_sigmoid(const Tensor& x) { return logsigmoid(x); }
Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  std::int64_t elements = 1;  // of a channel; the value of a single one would become 0
  for (std::int64_t d = 2; d < x.dim(); ++d) elements *= x.size(d);
  if (elements == 1)
    throw ArgumentError(
        str("instance_norm: expected more than 1 spatial element, got input size ", x.shape()));
  return group_norm(x, x.size(1), weight, bias, eps);
}
Tensor normalize(const Tensor& x, double p, std::int64_t dim, double eps) {
  return x / clamp_min(norm(x, p, wrap_dim("normalize", dim, x.dim()), true), eps);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  const char* const op = "cosine_similarity";
  ops::check_together(op, {&a, &b});
  const DType dtype = promote(a.dtype(), b.dtype());
  if (!is_floating(dtype))
    throw DTypeError(str(op, ": expected floating point, got ", a.dtype(), " and ", b.dtype()));
  const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
  const int d = wrap_dim(op, dim, shape.rank());
  // the lengths are those of the vectors that are multiplied, so after broadcasting
  const Tensor x = a.to(dtype).expand(shape), y = b.to(dtype).expand(shape);
  return sum(x / clamp_min(norm(x, 2, d, true), eps) * (y / clamp_min(norm(y, 2, d, true), eps)),
             d);
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return norm(a - b + eps, p, -1, keepdim);
}
Tensor dist(const Tensor& a, const Tensor& b, double p) { return norm(a - b, p); }
std::tuple<Tensor, Tensor> aminmax(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  const IntList dims = dim ? IntList(*dim) : IntList();
  return {amin(x, dims, keepdim), amax(x, dims, keepdim)};
}
Tensor nansum(const Tensor& x, const IntList& dims, bool keepdim) {
  return sum(is_floating(x.dtype()) ? masked_fill(x, isnan(x), 0) : x, dims, keepdim);
}
Tensor nanmean(const Tensor& x, const IntList& dims, bool keepdim) {
  return nansum(x, dims, keepdim) / sum(!isnan(x), dims, keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& x, const IntList& dims, double correction,
                                    bool keepdim) {
  return {detail::std(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}
Tensor real(const Tensor& x) { return x; }
Tensor frobenius_norm(const Tensor& x, const IntList& dims, bool keepdim) {
  return norm(x, 2, dims, keepdim);
}
Tensor linalg_norm(const Tensor& x, const std::optional<Scalar>& order, const IntList& dims,
                   bool keepdim) {
  const auto rank = dims.size() == 0 ? static_cast<std::size_t>(x.dim()) : dims.size();
  if (order && rank != 1)
    throw ArgumentError(str("linalg_norm: expected one dim with the order ", *order,
                            ", since Braid has no norms of matrices, got ", rank, " dims"));
  return norm(x, order ? order->to_double() : 2, dims, keepdim);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& value, bool out_int32, bool right,
                    std::optional<std::string_view> side) {
  return searchsorted(
      sorted_sequence,
      full({}, value, {.device = sorted_sequence.device(), .dtype = sorted_sequence.dtype()}),
      out_int32, right, side);
}
Tensor diff(const Tensor& x, std::int64_t n, std::int64_t dim) {
  if (n < 0) throw ArgumentError(str("diff: expected n >= 0, got ", n));
  if (x.dim() == 0) throw ShapeError("diff: expected at least one dimension, got a scalar");
  const int d = wrap_dim("diff", dim, x.dim());
  if (n == 0) return x.clone();
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t size = y.shape()[d];
    if (size == 0) return y.clone();
    const Tensor a = y.slice(d, 1, size), b = y.slice(d, 0, size - 1);
    y = y.dtype() == DType::bool_ ? logical_xor(a, b) : a - b;
  }
  return y;
}
ValuesIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t dim, bool keepdim) {
  const int d = wrap_dim("kthvalue", dim, x.dim());
  const std::int64_t size = x.dim() == 0 ? 1 : x.shape()[d];
  if (k < 1 || k > size) throw IndexError(str("kthvalue: expected k in [1, ", size, "], got ", k));
  const ValuesIndices all = sort(x, d);
  if (x.dim() == 0) return all;
  const auto chosen = [&](const Tensor& t) {
    return keepdim ? t.narrow(d, k - 1, 1) : t.select(d, k - 1);
  };
  return {chosen(all.values), chosen(all.indices)};
}
Tensor msort(const Tensor& x) { return sort(x, 0).values; }
Tensor fliplr(const Tensor& x) { return flip(x, 1); }
Tensor flipud(const Tensor& x) { return flip(x, 0); }
Tensor tile(const Tensor& x, const IntList& times) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(
                                    0, x.dim() - static_cast<std::int64_t>(times.size()))),
                                1);
  all.insert(all.end(), times.begin(), times.end());
  return repeat(x, all);
}
Tensor atleast_1d(const Tensor& x) { return x.dim() > 0 ? x : x.reshape(1); }
Tensor atleast_2d(const Tensor& x) { return x.dim() > 1 ? x : atleast_1d(x).unsqueeze(0); }
Tensor adjoint(const Tensor& x) { return x.mT(); }
Tensor diagflat(const Tensor& x, std::int64_t offset) { return diag(x.reshape(-1), offset); }
Tensor narrow_copy(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return x.narrow(dim, start, length).clone();
}
Tensor take(const Tensor& x, const Tensor& index) {
  ops::check_index("take", x, index);
  return x.reshape(-1)[index];
}
Tensor argwhere(const Tensor& x) { return nonzero(x); }
bool is_nonzero(const Tensor& x) { return static_cast<bool>(x); }
bool is_same_size(const Tensor& a, const Tensor& b) { return a.shape() == b.shape(); }
Tensor hstack(std::span<const Tensor> list) {
  std::vector<Tensor> all;
  for (const Tensor& t : list) all.push_back(atleast_1d(t));
  return cat(all, all.empty() || all[0].dim() == 1 ? 0 : 1);
}
Tensor hstack(std::initializer_list<Tensor> list) {
  return hstack(std::span<const Tensor>(list.begin(), list.size()));
}
Tensor vstack(std::span<const Tensor> list) {
  std::vector<Tensor> all;
  for (const Tensor& t : list) all.push_back(atleast_2d(t));
  return cat(all);
}
Tensor vstack(std::initializer_list<Tensor> list) {
  return vstack(std::span<const Tensor>(list.begin(), list.size()));
}

Tensor special::expit(const Tensor& x) { return sigmoid(x); }

}  // namespace braid
