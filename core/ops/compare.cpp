// Comparisons and logic, elementwise and of whole tensors. They have no gradients.
#include <braid/core/ops/compare.hpp>

#include <cmath>
#include <vector>

#include <braid/core/ops/elementwise.hpp>

#include "map.hpp"

namespace braid {
namespace {

/// Compares exact values, even if x's integer type cannot hold the value: 1 < 3e9 is true in int32
/// too.
Tensor compared(const char* op, BinaryOp kind, const Tensor& x, const Scalar& value) {
  const DType dtype = detail::defined(x.impl()).dtype;
  if (is_floating(dtype)) return ops::with_scalar(op, kind, x, value);
  if (value.is_whole()) {
    const std::int64_t whole = value.to_int64();
    if (dtype == DType::bool_) return ops::with_scalar(op, kind, x.to(DType::int64), whole);
    if (ops::wrapped(value, dtype) == whole) return ops::with_scalar(op, kind, x, whole);
  }
  // In float64 the largest int64 values round up to 2^63, so use an infinity for numbers beyond
  // int64.
  double number = value.to_double();
  if (number >= 0x1p63 || number < -0x1p63) number = std::copysign(INFINITY, number);
  return ops::with_scalar(op, kind, x.to(DType::float64), number);
}

Tensor logical(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::bool_), y = b.to(DType::bool_);
  const ops::Pair p(op, x, y);
  return ops::binary(op, kind, *p.a, *p.b);
}

Tensor compare(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b) {
  const ops::Pair p(op, a, b);
  return ops::binary(op, kind, *p.a, *p.b);
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", BinaryOp::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare("ne", BinaryOp::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", BinaryOp::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", BinaryOp::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare("gt", BinaryOp::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare("ge", BinaryOp::ge, a, b); }
Tensor eq(const Tensor& a, const Scalar& b) { return compared("eq", BinaryOp::eq, a, b); }
Tensor ne(const Tensor& a, const Scalar& b) { return compared("ne", BinaryOp::ne, a, b); }
Tensor lt(const Tensor& a, const Scalar& b) { return compared("lt", BinaryOp::lt, a, b); }
Tensor le(const Tensor& a, const Scalar& b) { return compared("le", BinaryOp::le, a, b); }
Tensor gt(const Tensor& a, const Scalar& b) { return compared("gt", BinaryOp::gt, a, b); }
Tensor ge(const Tensor& a, const Scalar& b) { return compared("ge", BinaryOp::ge, a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", BinaryOp::mul, a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", BinaryOp::add, a, b);
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return logical("logical_xor", BinaryOp::ne, a, b);
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  ops::check_together("allclose", {&a, &b});
  if (a.shape() != b.shape()) {
    const Shape shape = broadcast_shapes("allclose", a.shape(), b.shape());
    return allclose(a.expand(shape), b.expand(shape), rtol, atol);
  }
  if (!is_floating(a.dtype()) && !is_floating(b.dtype())) {
    const std::vector<std::int64_t> x = a.to_vector<std::int64_t>(),
                                    y = b.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto p = static_cast<std::uint64_t>(x[i]), q = static_cast<std::uint64_t>(y[i]);
      const auto apart = static_cast<double>(x[i] > y[i] ? p - q : q - p);
      if (x[i] != y[i] && !(apart <= atol + rtol * std::abs(static_cast<double>(y[i]))))
        return false;
    }
    return true;
  }
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isfinite(x[i]) && std::isfinite(y[i]) &&
                          std::abs(x[i] - y[i]) <= atol + rtol * std::abs(y[i])))
      return false;
  return true;
}

bool equal(const Tensor& a, const Tensor& b) {
  ops::check_device("equal", a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (is_floating(a.dtype())) {
    const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
    return x == y;
  }
  return a.to_vector<std::int64_t>() == b.to_vector<std::int64_t>();
}

Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
Tensor operator==(const Tensor& a, const Scalar& b) { return eq(a, b); }
Tensor operator!=(const Tensor& a, const Scalar& b) { return ne(a, b); }
Tensor operator<(const Tensor& a, const Scalar& b) { return lt(a, b); }
Tensor operator<=(const Tensor& a, const Scalar& b) { return le(a, b); }
Tensor operator>(const Tensor& a, const Scalar& b) { return gt(a, b); }
Tensor operator>=(const Tensor& a, const Scalar& b) { return ge(a, b); }
Tensor operator==(const Scalar& a, const Tensor& b) { return eq(a, b); }
Tensor operator!=(const Scalar& a, const Tensor& b) { return ne(a, b); }
Tensor operator<(const Scalar& a, const Tensor& b) { return lt(a, b); }
Tensor operator<=(const Scalar& a, const Tensor& b) { return le(a, b); }
Tensor operator>(const Scalar& a, const Tensor& b) { return gt(a, b); }
Tensor operator>=(const Scalar& a, const Tensor& b) { return ge(a, b); }

}  // namespace braid
