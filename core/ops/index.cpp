// Selects rows by index: embedding, index_select.
#include <braid/core/ops/index.hpp>

#include <braid/core/internal/kernel_args/index.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// The gradient of gather_rows: zeros of shape `table`, to which the rows of dy are added at the
/// index. Recorded; its gradient is gather_rows.
Tensor scatter_add_rows(const Tensor& dy, const Tensor& index, const Shape& table);

/// Returns dy with 0 in the rows whose index is `padding`. Recorded.
Tensor without_padding(const Tensor& dy, const Tensor& index, std::int64_t padding) {
  Shape column = Shape::filled(dy.dim(), 1);
  column[0] = index.numel();
  return where(eq(index, padding).reshape(column), ops::filled({}, 0, dy.dtype(), dy.device()), dy);
}

/// Selects rows of dim 0 by a contiguous int64 index of rank 1. Recorded. With `wrap`, negative
/// indices count from the end. Row `padding` gets no gradient (-1: all rows get theirs).
Tensor gather_rows(const char* op, const Tensor& x, const Tensor& index, bool wrap,
                   std::int64_t padding = -1) {
  const Tensor table = x.contiguous();
  Shape shape = table.shape();
  shape[0] = index.shape()[0];
  Tensor y = make_tensor(shape, table.dtype(), table.device());
  const std::int64_t width = [&] {
    Shape row = table.shape();
    row.erase(0);
    return row.numel();
  }();
  if (index.numel())
    launch(op, table.device(), &KernelTable::gather_rows,
           GatherRowsArgs{table.dtype(), table.id()->data(),
                          static_cast<const std::int64_t*>(index.id()->data()), y.id()->data(),
                          table.shape()[0], shape[0], width, op, wrap});
  if (!needs_grad({table})) return y;
  return record(
      op, {table}, y,
      [saved = SavedTensor(index), whole = table.shape(), padding](const Tensor& dy) -> Grads {
        const Tensor rows = saved.get();
        return {
            scatter_add_rows(padding < 0 ? dy : without_padding(dy, rows, padding), rows, whole)};
      });
}

Tensor scatter_add_rows(const Tensor& dy, const Tensor& index, const Shape& table) {
  const Tensor g = dy.contiguous();
  Tensor dx = ops::filled(table, 0, g.dtype(), g.device());
  if (g.numel())
    launch("scatter_add_rows", g.device(), &KernelTable::scatter_add_rows,
           ScatterAddRowsArgs{g.dtype(), dx.id()->data(),
                              static_cast<const std::int64_t*>(index.id()->data()), g.id()->data(),
                              table[0], index.numel(), g.numel() / index.numel()});
  if (!needs_grad({g})) return dx;
  return record("scatter_add_rows", {g}, dx,
                [saved = SavedTensor(index)](const Tensor& ddx) -> Grads {
                  return {gather_rows("gather_rows", ddx, saved.get(), true)};
                });
}

}  // namespace

void ops::check_index(const char* op, const Tensor& x, const Tensor& index) {
  check_device(op, x, index);
  if (index.dtype() != DType::int64)
    throw DTypeError(str(op, ": expected an int64 index, got ", index.dtype()));
}

Tensor ops::index_rows(const Tensor& x, const Tensor& index) {
  check_index("index", x, index);
  if (x.dim() == 0) throw ShapeError("index: expected a tensor with dimensions, got a scalar");
  return gather_rows("index", x, index.contiguous(), true);
}

Tensor ops::pick_rows(const char* op, const Tensor& x, const Tensor& index) {
  return gather_rows(op, x, index.contiguous(), false);
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  ops::check_index("index_select", x, index);
  if (index.dim() != 1)
    throw ShapeError(str("index_select: expected an index of rank 1, got ", index.shape()));
  const int d = wrap_dim("index_select", dim, x.dim());
  if (x.dim() == 0) {
    if (index.numel() != 1)
      throw ShapeError(
          str("index_select: expected one index for a scalar, got shape ", index.shape()));
    return index_select(x.reshape({1}), 0, index).reshape({});
  }
  const Tensor i = index.contiguous();
  return d == 0 ? gather_rows("index_select", x, i, true)
                : gather_rows("index_select", x.transpose(0, d), i, true).transpose(0, d);
}

Tensor embedding(const Tensor& weight, const Tensor& index,
                 std::optional<std::int64_t> padding_idx) {
  if (index.dtype() != DType::int64 && weight.dtype() == DType::int64)
    throw DTypeError(
        str("embedding: expected the weight, then an int64 index, got the index first and ",
            index.dtype(), " behind it (the order of F.embedding)"));
  ops::check_index("embedding", weight, index);
  if (weight.dim() != 2)
    throw ShapeError(str("embedding: expected weight [rows, width], got ", weight.shape()));
  const std::int64_t rows = weight.shape()[0], padding = !padding_idx       ? -1
                                                         : *padding_idx < 0 ? *padding_idx + rows
                                                                            : *padding_idx;
  if (padding_idx && (padding < 0 || padding >= rows))
    throw IndexError(
        str("embedding: expected padding_idx in [", -rows, ", ", rows, "), got ", *padding_idx));
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  return gather_rows("embedding", weight, index.contiguous().reshape({index.numel()}), false,
                     padding)
      .reshape(shape);
}

}  // namespace braid
