// Products for specific ranks (mm, bmm, mv, dot) and tensordot: checks, then matmul. Also outer.
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Throws unless a and b have one device, one dtype that supports products, and the given ranks.
void check_operands(const char* op, const Tensor& a, const Tensor& b, int rank_a, int rank_b) {
  ops::check_device(op, a, b);
  ops::check_dtype(op, a, b);
  if (a.dtype() == DType::bool_ || a.dtype() == DType::uint8)
    throw DTypeError(str(op, ": expected floating point, int32 or int64, got ", a.dtype()));
  if (a.dim() != rank_a || b.dim() != rank_b)
    throw ShapeError(str(op, ": expected tensors of rank ", rank_a, " and ", rank_b, ", got ",
                         a.shape(), " and ", b.shape()));
}
void check_inner(const char* op, const Tensor& a, const Tensor& b, std::int64_t inner_a,
                 std::int64_t inner_b) {
  if (inner_a != inner_b)
    throw ShapeError(
        str(op, ": expected equal inner dimensions, got ", a.shape(), " and ", b.shape()));
}

/// The wanted dims of x as indices >= 0. others() returns the remaining dims.
struct Dims {
  Shape dims;
  bool taken[kMaxRank] = {};
  Dims(const char* name, const Tensor& x, const Shape& wanted) {
    for (const std::int64_t d : wanted) {
      const int at = wrap_dim("tensordot", d, x.dim());
      if (taken[at])
        throw ArgumentError(
            str("tensordot: expected each dim of ", name, " once, got ", d, " again"));
      taken[at] = true;
      dims.push_back(at);
    }
  }
  [[nodiscard]] Shape others(const Tensor& x) const {
    Shape rest;
    for (int d = 0; d < x.dim(); ++d)
      if (!taken[d]) rest.push_back(d);
    return rest;
  }
};
Shape sizes_of(const Tensor& x, const Shape& dims) {
  Shape sizes;
  for (const std::int64_t d : dims) sizes.push_back(x.shape()[static_cast<int>(d)]);
  return sizes;
}
Shape joined(const Shape& a, const Shape& b) {
  Shape all = a;
  for (const std::int64_t d : b) all.push_back(d);
  return all;
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  check_operands("mm", a, b, 2, 2);
  check_inner("mm", a, b, a.shape()[1], b.shape()[0]);
  return matmul(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_operands("bmm", a, b, 3, 3);
  if (a.shape()[0] != b.shape()[0])
    throw ShapeError(str("bmm: expected batches of one size, got ", a.shape(), " and ", b.shape()));
  check_inner("bmm", a, b, a.shape()[2], b.shape()[1]);
  return matmul(a, b);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  check_operands("mv", a, b, 2, 1);
  check_inner("mv", a, b, a.shape()[1], b.shape()[0]);
  return matmul(a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_operands("dot", a, b, 1, 1);
  check_inner("dot", a, b, a.shape()[0], b.shape()[0]);
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  ops::check_device("outer", a, b);
  if (a.dim() != 1 || b.dim() != 1)
    throw ShapeError(str("outer: expected two vectors, got ", a.shape(), " and ", b.shape()));
  return mul(a.unsqueeze(1), b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& dims_a, const Shape& dims_b) {
  check_operands("tensordot", a, b, a.dim(), b.dim());
  if (dims_a.rank() != dims_b.rank())
    throw ArgumentError(
        str("tensordot: expected as many dims of a as of b, got ", dims_a, " and ", dims_b));
  const Dims of_a("a", a, dims_a), of_b("b", b, dims_b);
  Tensor x = a, y = b;
  for (int i = 0; i < dims_a.rank(); ++i) {
    const std::int64_t da = of_a.dims[i], db = of_b.dims[i], n = a.shape()[static_cast<int>(da)],
                       m = b.shape()[static_cast<int>(db)];
    if (n == m) continue;
    if (n == 1) y = y.sum({db}, true).to(b.dtype());  // a sum of int32 is int64
    else if (m == 1) x = x.sum({da}, true).to(a.dtype());
    else
      throw ShapeError(str("tensordot: expected equal sizes of dim ", da, " of a and dim ", db,
                           " of b, got ", a.shape(), " and ", b.shape()));
  }
  const Shape left = of_a.others(x), right = of_b.others(y), rows = sizes_of(x, left),
              columns = sizes_of(y, right);
  const std::int64_t inner = sizes_of(x, of_a.dims).numel();
  const Tensor product =
      matmul(x.permute(joined(left, of_a.dims)).reshape({rows.numel(), inner}),
             y.permute(joined(of_b.dims, right)).reshape({inner, columns.numel()}));
  return product.reshape(joined(rows, columns));
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t dims) {
  if (dims < 0) throw ArgumentError(str("tensordot: expected dims >= 0, got ", dims));
  if (dims > a.dim() || dims > b.dim())
    throw ShapeError(str("tensordot: expected tensors of rank >= ", dims, ", got ", a.shape(),
                         " and ", b.shape()));
  Shape last, first;
  for (std::int64_t d = 0; d < dims; ++d) {
    last.push_back(a.dim() - dims + d);
    first.push_back(d);
  }
  return tensordot(a, b, last, first);
}

}  // namespace braid
