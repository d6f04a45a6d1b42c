// Products of ops/composed.hpp: beta x + alpha times a product, and inner products.
#include <braid/core/ops/composed.hpp>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/reduce.hpp>

#include "ops/map.hpp"
#include "ops/matmul.hpp"

namespace braid {
namespace {

/// Zeros in place of x, whatever its values are. The gradient of x is 0.
Tensor without_values(const char* op, const Tensor& x) {
  Tensor y = ops::zeros_as(x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
}

void check_added(const char* op, const Tensor& x, const Shape& product) {
  if (x.dim() > product.rank() || broadcast_shapes(op, x.shape(), product) != product)
    throw ShapeError(str(op, ": expected x that broadcasts to the shape ", product,
                         " of the product, got ", x.shape()));
}

/// Returns beta x + alpha product. Requires factors of add_alpha.
Tensor added(const char* op, const Tensor& x, const Tensor& product, const Scalar& beta,
             const Scalar& alpha) {
  check_added(op, x, product.shape());
  const Tensor term = beta == 0 ? without_values(op, x) : beta == 1 ? x : x * beta;
  return alpha == 0 ? add(term, without_values(op, product)) : add(term, product, alpha);
}

/// True if both are matrices, or batches of them, that have a product.
bool multiply(const Tensor& a, const Tensor& b, int rank) {
  return a.dim() == rank && b.dim() == rank && a.shape()[rank - 1] == b.shape()[rank - 2] &&
         (rank == 2 || a.shape()[0] == b.shape()[0]);
}

/// Returns x + a b of operands that multiply, rounded once by the kernel of the product. Recorded.
Tensor with_product(const char* op, const Tensor& x, const Tensor& a, const Tensor& b) {
  const Tensor y = [&] {
    const NoGrad guard;
    Shape shape = a.shape();
    shape[a.dim() - 1] = b.shape()[b.dim() - 1];
    check_added(op, x, shape);
    const bool row = x.shape() == Shape{shape.back()};
    ops::Product product(op, a, false, b, false, row ? x : Tensor());
    if (!row) product.then(Epilogue::add, x.expand(shape).contiguous());
    product.launch();
    return product.result();
  }();
  if (!needs_grad({x, a, b})) return y;
  return record(op, {x, a, b}, y,
                [shape = x.shape(), sa = ops::saved_for({b}, a), sb = ops::saved_for({a}, b)](
                    const Tensor& dy, Needs needs) -> Grads {
                  return {needs[0] ? ops::sum_to(dy, shape) : Tensor(),
                          needs[1] ? ops::recorded_product(dy, false, sb.get(), true) : Tensor(),
                          needs[2] ? ops::recorded_product(sa.get(), true, dy, false) : Tensor()};
                });
}

/// Checks the dtypes and the factors, and calls product() for the rest. 16-bit types are rounded
/// once: by the kernel of the product of matrices of this rank (0: of none), else they are computed
/// in float32, since a product of float16 may be infinite where alpha times it is not.
template <class F>
Tensor added_to_product(const char* op, const Tensor& x, const Tensor& a, const Tensor& b,
                        const Scalar& beta, const Scalar& alpha, int rank, F product) {
  for (const Tensor* t : {&a, &b}) {
    ops::check_device(op, x, *t);
    ops::check_dtype(op, x, *t);
  }
  const DType dtype = x.dtype();
  const Scalar times_x = ops::add_alpha(op, dtype, beta),
               times_product = ops::add_alpha(op, dtype, alpha);
  if (rank > 0 && is_floating(dtype) && size_of(dtype) == 2 && times_x == 1 && times_product == 1 &&
      multiply(a, b, rank))
    return with_product(op, x, a, b);
  return ops::rounded_once(dtype, [&](DType as) {
    return added(op, x.to(as), product(a.to(as), b.to(as)), times_x, times_product);
  });
}

/// The product of matrices [from, to), split where `cut` says.
Tensor chained(std::span<const Tensor> matrices, const std::vector<std::vector<std::size_t>>& cut,
               std::size_t from, std::size_t to) {
  if (to - from == 1) return matrices[from];
  const std::size_t at = cut[from][to];
  return matmul(chained(matrices, cut, from, at), chained(matrices, cut, at, to));
}

}  // namespace

#define BRAID_ADDED(name, rank, product)                                               \
  Tensor name(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,   \
              const Scalar& alpha) {                                                   \
    if (detail::autocasting()) [[unlikely]] {                                          \
      const detail::Autocasted low(detail::Precision::low);                            \
      return name(low(x), low(a), low(b), beta, alpha);                                \
    }                                                                                  \
    return added_to_product(#name, x, a, b, beta, alpha, rank,                         \
                            [](const Tensor& p, const Tensor& q) { return product; }); \
  }
BRAID_ADDED(addmm, 2, mm(p, q))
BRAID_ADDED(addmv, 0, mv(p, q))
BRAID_ADDED(baddbmm, 3, bmm(p, q))
BRAID_ADDED(addbmm, 0, sum(bmm(p, q), 0).to(p.dtype()))
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
  return ops::rounded_once(dtype, [&](DType as) {
    return added("addr", x.to(as), outer(a.to(as), b.to(as)), times_x, times_product);
  });
}

Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0) return a * b;
  if (a.shape().back() != b.shape().back())
    throw ShapeError(
        str("inner: expected one size of the last dims, got ", a.shape(), " and ", b.shape()));
  return tensordot(a, b, IntList(-1), IntList(-1));
}
Tensor vdot(const Tensor& a, const Tensor& b) { return dot(a, b); }

Tensor chain_matmul(std::span<const Tensor> matrices) {
  const std::size_t n = matrices.size();
  if (n == 0) throw ArgumentError("chain_matmul: expected at least one matrix, got none");
  std::vector<double> sizes;  // matrix i is [sizes[i], sizes[i + 1]]
  for (const Tensor& m : matrices) {
    if (m.dim() != 2 || (!sizes.empty() && static_cast<double>(m.size(0)) != sizes.back()))
      throw ShapeError(
          str("chain_matmul: expected matrices that fit each other, got one of shape ", m.shape()));
    if (sizes.empty()) sizes.push_back(static_cast<double>(m.size(0)));
    sizes.push_back(static_cast<double>(m.size(1)));
  }
  if (n == 1) return matrices[0].clone();
  // the fewest multiplications of each part, and where it is split
  std::vector<std::vector<double>> cost(n + 1, std::vector<double>(n + 1, 0));
  std::vector<std::vector<std::size_t>> cut(n + 1, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t length = 2; length <= n; ++length)
    for (std::size_t from = 0; from + length <= n; ++from) {
      const std::size_t to = from + length;
      for (std::size_t at = from + 1; at < to; ++at) {
        const double all = cost[from][at] + cost[at][to] + sizes[from] * sizes[at] * sizes[to];
        if (at == from + 1 || all < cost[from][to]) cost[from][to] = all, cut[from][to] = at;
      }
    }
  return chained(matrices, cut, 0, n);
}
Tensor chain_matmul(std::initializer_list<Tensor> matrices) {
  return chain_matmul(std::span<const Tensor>(matrices.begin(), matrices.size()));
}

}  // namespace braid
