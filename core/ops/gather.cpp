// Reads elements by index along one dim (gather), and writes them (scatter, scatter_add).
#include <braid/core/ops/gather.hpp>

#include <algorithm>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/index.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace ops {
namespace {

/// Throws ShapeError if the index is larger than `of` in a dim other than `free` (-1: in any dim).
void check_not_larger(const char* op, const Tensor& index, const char* what, const Shape& of,
                      int free) {
  for (int d = 0; d < of.rank(); ++d)
    if (d != free && index.shape()[d] > of[d])
      throw ShapeError(str(op, ": expected an index not larger than ", what, " ", of,
                           free < 0 ? "" : str(" except in dim ", free), ", got ", index.shape()));
}

void check_rank(const char* op, const char* what, const Tensor& t, const Tensor& x) {
  if (t.dim() != x.dim())
    throw ShapeError(str(op, ": expected ", what, " of rank ", x.dim(), " as x ", x.shape(),
                         ", got ", t.shape()));
}

/// Returns the index with those of [-size, 0) counted from the end. Others stay as they are, so
/// that the error of one out of range shows it.
Tensor from_the_end(const Tensor& index, std::int64_t size) {
  if (device_context(index.device()).host_memory) {
    const Tensor dense = index.contiguous();
    const auto* p = static_cast<const std::int64_t*>(dense.id()->data());
    if (std::none_of(p, p + dense.numel(), [](std::int64_t i) { return i < 0; })) return index;
  }
  return where(logical_and(lt(index, 0), ge(index, -size)), index + size, index);
}

}  // namespace

Tensor gathered(const char* op, const Tensor& x, std::int64_t dim, const Tensor& index) {
  check_index(op, x, index);
  check_rank(op, "an index", index, x);
  const int d = wrap_dim(op, dim, x.dim());
  if (x.dim() == 0) return gathered(op, x.reshape({1}), 0, index.reshape({1})).reshape({});
  check_not_larger(op, index, "x", x.shape(), d);
  Tensor y = make_tensor(index.shape(), x.dtype(), x.device());
  if (y.numel()) {
    Shape steps = x.strides();
    steps[d] = 0;
    GatherArgs args{x.dtype(),
                    y.id()->data(),
                    static_cast<const std::int64_t*>(index.id()->data()),
                    x.id()->data(),
                    {},
                    x.shape()[d],
                    x.strides()[d],
                    op};
    fill_loop(args.loop, y.shape(), {&y.strides(), &index.strides(), &steps}, 0);
    launch(op, x.device(), &KernelTable::gather, args);
  }
  if (!needs_grad({x})) return y;
  return record(op, {x}, y,
                [saved = SavedTensor(index), shape = x.shape(), d](const Tensor& dy) -> Grads {
                  return {scattered("scatter_add", filled(shape, 0, dy.dtype(), dy.device()), d,
                                    saved.get(), dy, true)};
                });
}

void scatter_values(const char* op, const Tensor& y, int d, const Tensor& index, const Tensor& src,
                    bool add) {
  if (index.numel() == 0) return;
  ScatterArgs args{y.dtype(),        add,
                   y.id()->data(),   static_cast<const std::int64_t*>(index.id()->data()),
                   src.id()->data(), {},
                   index.shape()[d], index.strides()[d],
                   src.strides()[d], y.shape()[d],
                   y.strides()[d],   op};
  Shape lines = index.shape(), of_y = y.strides(), of_index = index.strides(),
        of_src = src.strides();
  for (Shape* s : {&lines, &of_y, &of_index, &of_src}) s->erase(d);
  fill_loop(args.lines, lines, {&of_y, &of_index, &of_src}, 0);
  launch(op, y.device(), &KernelTable::scatter, args);
}

namespace {

/// Returns a mask of the index elements whose value remains after a scatter: of several equal
/// indices, the last one.
Tensor survives(const Shape& shape, int d, const Tensor& index) {
  Shape along = Shape::filled(index.dim(), 1);
  along[d] = index.shape()[d];
  const Tensor places =
      arange(along[d], {.device = index.device()}).reshape(along).expand(index.shape());
  const Tensor last =
      scattered("scatter", filled(shape, 0, DType::int64, index.device()), d, index, places, false);
  return eq(gathered("gather", last, d, index), places);
}

}  // namespace

Tensor scattered(const char* op, const Tensor& x, std::int64_t dim, const Tensor& index,
                 const Tensor& src, bool add) {
  check_index(op, x, index);
  check_repeated(op, index);
  check_device(op, x, src);
  check_dtype(op, x, src);
  check_rank(op, "an index", index, x);
  check_rank(op, "src", src, x);
  const int d = wrap_dim(op, dim, x.dim());
  if (x.dim() == 0)
    return scattered(op, x.reshape({1}), 0, index.reshape({1}), src.reshape({1}), add).reshape({});
  check_not_larger(op, index, "x", x.shape(), d);
  check_not_larger(op, index, "src", src.shape(), -1);
  Tensor from = src;
  for (int i = 0; i < x.dim(); ++i)
    if (from.shape()[i] != index.shape()[i]) from = from.narrow(i, 0, index.shape()[i]);
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  copy_values(y, x);
  scatter_values(op, y, d, index, from, add);
  if (!needs_grad({x, from})) return y;
  return record(
      op, {x, from}, y,
      [saved = SavedTensor(index), shape = x.shape(), d, add](const Tensor& dy,
                                                              Needs needs) -> Grads {
        const Tensor i = saved.get();
        Tensor dx, dsrc;
        if (needs[0])
          dx = add ? dy
                   : scattered("scatter", dy, d, i,
                               filled({}, 0, dy.dtype(), dy.device()).expand(i.shape()), false);
        if (needs[1]) dsrc = gathered("gather", dy, d, i);
        if (needs[1] && !add)
          dsrc = where(survives(shape, d, i), dsrc, filled({}, 0, dy.dtype(), dy.device()));
        return {dx, dsrc};
      });
}

}  // namespace ops

Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index) {
  return ops::gathered("gather", x, dim, index);
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return ops::scattered("scatter", x, dim, index, src, false);
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index, const Scalar& value) {
  ops::check_index("scatter", x, index);
  const Tensor number =
      ops::filled({}, ops::fill_value("scatter", value, x.dtype()), x.dtype(), x.device());
  return ops::scattered("scatter", x, dim, index, number.expand(index.shape()), false);
}

Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
  if (x.dtype() != src.dtype() && detail::autocasting(x.dtype(), src.dtype())) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return scatter_add(full(x), dim, index, full(src));
  }
  return ops::scattered("scatter_add", x, dim, index, src, true);
}

Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  ops::check_index("index_add", x, index);
  ops::check_device("index_add", x, source);
  ops::check_dtype("index_add", x, source);
  const int d = wrap_dim("index_add", dim, x.dim());
  if (index.dim() != 1)
    throw ShapeError(str("index_add: expected an index of rank 1, got ", index.shape()));
  if (x.dim() == 0)
    return index_add(x.reshape({1}), 0, index, source.dim() == 0 ? source.reshape({1}) : source,
                     alpha)
        .reshape({});
  Shape wanted = x.shape();
  wanted[d] = index.numel();
  if (source.shape() != wanted)
    throw ShapeError(
        str("index_add: expected a source of shape ", wanted, ", got ", source.shape()));
  Shape along = Shape::filled(x.dim(), 1);
  along[d] = index.numel();
  const Scalar factor = ops::add_alpha("index_add", x.dtype(), alpha);
  return ops::scattered("index_add", x, d, index.reshape(along).expand(wanted),
                        factor.to_double() == 1 ? source : mul(source, factor), true);
}

Tensor take_along_dim(const Tensor& x, const Tensor& given, std::int64_t dim) {
  ops::check_index("take_along_dim", x, given);
  ops::check_rank("take_along_dim", "an index", given, x);
  const int d = wrap_dim("take_along_dim", dim, x.dim());
  const Tensor index = ops::from_the_end(given, x.dim() == 0 ? 1 : x.shape()[d]);
  if (x.dim() == 0) return ops::gathered("take_along_dim", x, 0, index);
  Shape of_x = x.shape(), of_index = index.shape();
  of_x[d] = of_index[d] = 1;
  of_x = of_index = broadcast_shapes("take_along_dim", of_x, of_index);
  of_x[d] = x.shape()[d];
  of_index[d] = index.shape()[d];
  return ops::gathered("take_along_dim", x.expand(of_x), d, index.expand(of_index));
}

}  // namespace braid
