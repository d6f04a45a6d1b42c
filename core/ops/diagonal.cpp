// tril, triu, diagonal and diag.
#include <braid/core/ops/diagonal.hpp>

#include <algorithm>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Returns x where column - row <= diagonal (with `lower`) or >= diagonal (without), else 0.
Tensor triangle(const char* op, const Tensor& x, std::int64_t diagonal, bool lower) {
  if (x.dim() < 2) throw ShapeError(str(op, ": expected at least two dims, got ", x.shape()));
  const std::int64_t m = x.shape()[x.dim() - 2], n = x.shape().back();
  // diagonals beyond the corners give the same result as those next to the corners
  const std::int64_t shift = std::clamp<std::int64_t>(diagonal, -m - 1, n + 1);
  const Tensor column = arange(n, {.device = x.device()}),
               limit = arange(shift, shift + m, 1, {.device = x.device()}).unsqueeze(1);
  return where(lower ? le(column, limit) : ge(column, limit), x,
               ops::filled({}, 0, x.dtype(), x.device()));
}

}  // namespace

Tensor tril(const Tensor& x, std::int64_t diagonal) { return triangle("tril", x, diagonal, true); }
Tensor triu(const Tensor& x, std::int64_t diagonal) { return triangle("triu", x, diagonal, false); }

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t a, std::int64_t b) {
  if (x.dim() < 2) throw ShapeError(str("diagonal: expected at least two dims, got ", x.shape()));
  const int row = wrap_dim("diagonal", a, x.dim()), column = wrap_dim("diagonal", b, x.dim());
  if (row == column)
    throw ShapeError(str("diagonal: expected two different dims, got ", a, " and ", b));
  const std::int64_t m = x.shape()[row], n = x.shape()[column];
  const std::int64_t first_row = offset < 0 ? (offset < -m ? m : -offset) : 0,
                     first_column = offset > 0 ? std::min(offset, n) : 0;
  const std::int64_t length = std::max<std::int64_t>(std::min(m - first_row, n - first_column), 0);
  // sets `steps` to the strides of the view, and returns the offset of its first element
  const auto view_of = [&](const Shape& strides, Shape& steps) {
    steps = strides;
    const std::int64_t along = strides[row] + strides[column],
                       first = length == 0 || x.numel() == 0
                                   ? 0
                                   : first_row * strides[row] + first_column * strides[column];
    steps.erase(std::max(row, column));
    steps.erase(std::min(row, column));
    steps.push_back(along);
    return first;
  };
  Shape shape = x.shape(), steps, dense_steps;
  shape.erase(std::max(row, column));
  shape.erase(std::min(row, column));
  shape.push_back(length);
  const std::int64_t first = view_of(x.strides(), steps),
                     dense_first = view_of(contiguous_strides(x.shape()), dense_steps);
  Tensor y = make_view(x, shape, steps, x.storage_offset() + first);
  if (!needs_grad({x})) return y;
  return record("diagonal", {x}, y,
                [whole = x.shape(), dense_steps, dense_first](const Tensor& dy) -> Grads {
                  return {ops::embed("diagonal", dy, whole, dense_steps, dense_first)};
                });
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  if (x.dim() == 2) return ops::own_copy(diagonal(x, offset), x);
  if (x.dim() != 1) throw ShapeError(str("diag: expected a vector or a matrix, got ", x.shape()));
  std::int64_t apart = offset, n = 0, all = 0;
  if ((offset < 0 && __builtin_sub_overflow(std::int64_t{0}, offset, &apart)) ||
      __builtin_add_overflow(x.numel(), apart, &n) || __builtin_mul_overflow(n, n, &all))
    throw ShapeError(
        str("diag: expected a matrix of at most 2^63 - 1 elements, got offset ", offset));
  return ops::embed("diag", x, {n, n}, {n + 1},
                    x.numel() == 0 ? 0
                    : offset < 0   ? apart * n
                                   : apart);
}

}  // namespace braid
