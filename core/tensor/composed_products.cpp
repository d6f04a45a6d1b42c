// Products of ops/composed.hpp: beta x + alpha times a product, and inner products.
#include <braid/core/ops/composed.hpp>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/reduce.hpp>

#include "ops/map.hpp"

namespace braid {
namespace {

/// Zeros in place of x, whatever its values are. The gradient of x is 0.
Tensor without_values(const char* op, const Tensor& x) {
  Tensor y = ops::zeros_as(x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
}

/// Returns beta x + alpha product. Requires factors of add_alpha.
Tensor added(const char* op, const Tensor& x, const Tensor& product, const Scalar& beta,
             const Scalar& alpha) {
  if (x.dim() > product.dim() ||
      broadcast_shapes(op, x.shape(), product.shape()) != product.shape())
    throw ShapeError(str(op, ": expected x that broadcasts to the shape ", product.shape(),
                         " of the product, got ", x.shape()));
  const Tensor term = beta == 0 ? without_values(op, x) : beta == 1 ? x : x * beta;
  return alpha == 0 ? add(term, without_values(op, product)) : add(term, product, alpha);
}

/// Checks the dtypes and the factors, and calls product() for the rest.
template <class F>
Tensor added_to_product(const char* op, const Tensor& x, const Tensor& a, const Tensor& b,
                        const Scalar& beta, const Scalar& alpha, F product) {
  for (const Tensor* t : {&a, &b}) {
    ops::check_device(op, x, *t);
    ops::check_dtype(op, x, *t);
  }
  const Scalar times_x = ops::add_alpha(op, x.dtype(), beta),
               times_product = ops::add_alpha(op, x.dtype(), alpha);
  return added(op, x, product(a, b), times_x, times_product);
}

}  // namespace

#define BRAID_ADDED(name, product)                                                     \
  Tensor name(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,   \
              const Scalar& alpha) {                                                   \
    if (detail::autocasting()) [[unlikely]] {                                          \
      const detail::Autocasted low(detail::Precision::low);                            \
      return name(low(x), low(a), low(b), beta, alpha);                                \
    }                                                                                  \
    return added_to_product(#name, x, a, b, beta, alpha,                               \
                            [](const Tensor& p, const Tensor& q) { return product; }); \
  }
BRAID_ADDED(addmm, mm(p, q))
BRAID_ADDED(addmv, mv(p, q))
BRAID_ADDED(baddbmm, bmm(p, q))
BRAID_ADDED(addbmm, sum(bmm(p, q), 0).to(p.dtype()))
#undef BRAID_ADDED

Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
            const Scalar& alpha) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return addr(low(x), low(a), low(b), beta, alpha);
  }
  ops::check_device("addr", x, a);
  const DType dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
  const Scalar times_x = ops::add_alpha("addr", dtype, beta),
               times_product = ops::add_alpha("addr", dtype, alpha);
  return added("addr", x.to(dtype), outer(a.to(dtype), b.to(dtype)), times_x, times_product);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0) return a * b;
  if (a.shape().back() != b.shape().back())
    throw ShapeError(
        str("inner: expected one size of the last dims, got ", a.shape(), " and ", b.shape()));
  return tensordot(a, b, IntList(-1), IntList(-1));
}
Tensor vdot(const Tensor& a, const Tensor& b) { return dot(a, b); }

}  // namespace braid
