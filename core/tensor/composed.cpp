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
#include <braid/core/ops/statistics.hpp>

namespace braid {

Tensor positive(const Tensor& x) {
  if (x.dtype() == DType::bool_) throw DTypeError("positive: expected numbers, got bool");
  return x;
}
Tensor deg2rad(const Tensor& x) { return x * (M_PI / 180); }
Tensor rad2deg(const Tensor& x) { return x * (180 / M_PI); }
Tensor sgn(const Tensor& x) { return sign(x); }
Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return sub(b, a, alpha); }
Tensor hypot(const Tensor& a, const Tensor& b) {
  const Tensor p = abs(a), q = abs(b), most = maximum(p, q).detach();
  const Tensor scale = where((most == 0) | isinf(most), 1, most);
  return scale * sqrt(square(p / scale) + square(q / scale));
}
Tensor ldexp(const Tensor& a, const Tensor& b) { return a * exp2(b); }
Tensor logaddexp(const Tensor& a, const Tensor& b) {
  const Tensor most = maximum(a, b);
  return where(isinf(most), most, most + log1p(exp(-abs(a - b))));
}
Tensor float_power(const Tensor& x, const Tensor& exponent) {
  return pow(x.to(DType::float64), exponent);
}
Tensor float_power(const Tensor& x, const Scalar& exponent) {
  return pow(x.to(DType::float64), exponent.to_double());
}
Tensor xlogy(const Tensor& x, const Scalar& y) {
  return xlogy(x, full({}, y, {.device = x.device()}).to(promote(x.dtype(), y)));
}
Tensor xlogy(const Scalar& x, const Tensor& y) {
  return xlogy(full({}, x, {.device = y.device()}).to(promote(y.dtype(), x)), y);
}
Tensor isposinf(const Tensor& x) { return isinf(x) & (x > 0); }
Tensor isneginf(const Tensor& x) { return isinf(x) & (x < 0); }
Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const Tensor distance = abs(a - b);
  const Tensor close = (a == b) | (isfinite(distance) & (distance <= abs(b) * rtol + atol));
  return equal_nan ? close | (isnan(a) & isnan(b)) : close;
}
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x.clone();
  constexpr double kFloat32Max = std::numeric_limits<float>::max();
  const double most = x.dtype() == DType::float16    ? 65504
                      : x.dtype() == DType::bfloat16 ? 0x1.fep127
                      : x.dtype() == DType::float32  ? kFloat32Max
                                                     : std::numeric_limits<double>::max();
  const Tensor finite = masked_fill(masked_fill(x, isposinf(x), posinf.value_or(most)), isneginf(x),
                                    neginf.value_or(-most));
  return masked_fill(finite, isnan(x), nan);
}
Tensor round(const Tensor& x, std::int64_t decimals) {
  const double scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
  return decimals < 0 ? round(x / scale) * scale : round(x * scale) / scale;
}
Tensor glu(const Tensor& x, std::int64_t dim) {
  const std::vector<Tensor> halves = split(x, {x.size(dim) / 2, x.size(dim) / 2}, dim);
  return halves[0] * sigmoid(halves[1]);
}
Tensor hardshrink(const Tensor& x, double lambda) {
  return masked_fill(x, (x >= -lambda) & (x <= lambda), 0);
}
Tensor softshrink(const Tensor& x, double lambda) { return x - clamp(x, -lambda, lambda); }
Tensor tanhshrink(const Tensor& x) { return x - tanh(x); }
Tensor threshold(const Tensor& x, double threshold, double value) {
  return masked_fill(x, x <= threshold, value);
}
Tensor prelu(const Tensor& x, const Tensor& weight) {
  Shape shape = Shape::filled(x.dim(), 1);
  if (x.dim() > 0) shape[x.dim() > 1 ? 1 : 0] = weight.numel();
  return where(x > 0, x, weight.reshape(shape) * x);
}
Tensor softmin(const Tensor& x, std::int64_t dim) { return softmax(-x, dim); }
Tensor log_sigmoid(const Tensor& x) { return logsigmoid(x); }
Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return group_norm(x, x.size(1), weight, bias, eps);
}
Tensor normalize(const Tensor& x, double p, std::int64_t dim, double eps) {
  return x / clamp_min(norm(x, p, dim, true), eps);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  return sum(
      a / clamp_min(norm(a, 2, dim, true), eps) * (b / clamp_min(norm(b, 2, dim, true), eps)), dim);
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
  const VarMean y = var_mean(x, dims, correction, keepdim);
  return {sqrt(y.var), y.mean};
}
Tensor diff(const Tensor& x, std::int64_t n, std::int64_t dim) {
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t size = y.size(dim);
    const Tensor a = y.slice(dim, 1, size), b = y.slice(dim, 0, size > 0 ? size - 1 : 0);
    y = y.dtype() == DType::bool_ ? logical_xor(a, b) : a - b;
  }
  return y;
}
ValuesIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t dim, bool keepdim) {
  const ValuesIndices all = sort(x, dim);
  const auto chosen = [&](const Tensor& t) {
    return keepdim ? t.narrow(dim, k - 1, 1) : t.select(dim, k - 1);
  };
  if (k < 1) (void)x.select(dim, x.size(dim));  // throws IndexError, as for a k that is too large
  return {chosen(all.values), chosen(all.indices)};
}
Tensor msort(const Tensor& x) { return sort(x, 0).values; }
// beta x + alpha times a product of a and b
#define BRAID_ADDED(name, product)                                                   \
  Tensor name(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, \
              const Scalar& alpha) {                                                 \
    return add(x * beta, product, alpha);                                            \
  }
BRAID_ADDED(addmm, mm(a, b))
BRAID_ADDED(addmv, mv(a, b))
BRAID_ADDED(addr, outer(a, b))
BRAID_ADDED(baddbmm, bmm(a, b))
BRAID_ADDED(addbmm, sum(bmm(a, b), 0))
#undef BRAID_ADDED
Tensor inner(const Tensor& a, const Tensor& b) {
  return a.dim() == 0 || b.dim() == 0 ? a * b : tensordot(a, b, IntList(-1), IntList(-1));
}
Tensor vdot(const Tensor& a, const Tensor& b) { return dot(a, b); }
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
Tensor take(const Tensor& x, const Tensor& index) { return x.reshape(-1)[index]; }
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

}  // namespace braid
