// Functions that put tensors side by side, or their elements in another order.
#include <braid/core/ops/arrange.hpp>

#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/pad.hpp>
#include <braid/core/ops/parts.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/ops/shape.hpp>

#include "ops/map.hpp"

namespace braid {
namespace {

template <class F> std::vector<Tensor> each(std::span<const Tensor> list, F f) {
  std::vector<Tensor> all;
  for (const Tensor& t : list) all.push_back(f(t));
  return all;
}

Tensor indices_of(const Tensor& mask, const FactoryOptions& options) {
  const Device device = ops::device_of(options);
  const Tensor places =
      nonzero(mask).t().contiguous().to(device, options.dtype.value_or(DType::int64));
  return options.pinned_memory ? places.pin_memory() : places;
}

/// Throws unless there are at least `rank` dims and a positive factor.
void check_shuffle(const char* op, const Tensor& x, int rank, const char* name,
                   std::int64_t factor) {
  if (factor < 1) throw ArgumentError(str(op, ": expected ", name, " >= 1, got ", factor));
  if (x.dim() < rank)
    throw ShapeError(str(op, ": expected at least ", rank, " dims, got shape ", x.shape()));
}

/// The first dims of x, then the others.
Shape with_end(const Tensor& x, int dropped, std::initializer_list<std::int64_t> end) {
  Shape shape;
  for (int d = 0; d < x.dim() - dropped; ++d) shape.push_back(x.shape()[d]);
  for (const std::int64_t size : end) shape.push_back(size);
  return shape;
}

std::int64_t count_before(const Tensor& x, int dropped) {
  std::int64_t n = 1;
  for (int d = 0; d < x.dim() - dropped; ++d) n *= x.shape()[d];
  return n;
}

}  // namespace

#define BRAID_LIST(Result, name)                                     \
  Result name(std::initializer_list<Tensor> list) {                  \
    return name(std::span<const Tensor>(list.begin(), list.size())); \
  }

std::vector<Tensor> broadcast_tensors(std::span<const Tensor> list) {
  Shape shape;
  for (const Tensor& t : list) shape = broadcast_shapes("broadcast_tensors", shape, t.shape());
  return each(list, [&](const Tensor& t) { return t.expand(shape); });
}
BRAID_LIST(std::vector<Tensor>, broadcast_tensors)

std::vector<Tensor> meshgrid(std::span<const Tensor> list, std::string_view indexing) {
  if (indexing != "ij" && indexing != "xy")
    throw ArgumentError(
        str("meshgrid: expected the indexing \"ij\" or \"xy\", got \"", indexing, '"'));
  if (list.empty()) throw ArgumentError("meshgrid: expected at least one tensor, got none");
  const bool exchanged = indexing == "xy" && list.size() > 1;
  Shape shape;
  for (const Tensor& t : list) {
    if (t.dim() > 1)
      throw ShapeError(str("meshgrid: expected vectors, got one of shape ", t.shape()));
    shape.push_back(t.numel());
  }
  const int rank = shape.rank();
  std::vector<Tensor> grids;
  for (int d = 0; d < rank; ++d) {
    Shape along = Shape::filled(rank, 1);
    along[d] = shape[d];
    const Tensor grid = list[static_cast<std::size_t>(d)].reshape(along).expand(shape);
    grids.push_back(exchanged ? grid.transpose(0, 1) : grid);
  }
  return grids;
}
std::vector<Tensor> meshgrid(std::initializer_list<Tensor> list, std::string_view indexing) {
  return meshgrid(std::span<const Tensor>(list.begin(), list.size()), indexing);
}

Tensor cartesian_prod(std::span<const Tensor> list) {
  for (const Tensor& t : list)
    if (t.dim() != 1)
      throw ShapeError(str("cartesian_prod: expected vectors, got one of shape ", t.shape()));
  if (list.size() == 1) return list[0];
  return stack(each(meshgrid(list), [](const Tensor& t) { return t.flatten(); }), 1);
}
BRAID_LIST(Tensor, cartesian_prod)

Tensor block_diag(std::span<const Tensor> list) {
  std::int64_t width = 0, left = 0;
  for (const Tensor& t : list) {
    if (t.dim() > 2)
      throw ShapeError(str("block_diag: expected matrices, got one of shape ", t.shape()));
    width += t.dim() == 0 ? 1 : t.size(-1);
  }
  std::vector<Tensor> rows;
  for (const Tensor& t : list) {
    const Tensor block = atleast_2d(t);
    rows.push_back(pad(block, {left, width - left - block.size(1)}));
    left += block.size(1);
  }
  if (rows.empty()) throw ArgumentError("block_diag: expected at least one tensor, got none");
  return cat(rows);
}
BRAID_LIST(Tensor, block_diag)

Tensor column_stack(std::span<const Tensor> list) {
  return cat(
      each(list, [](const Tensor& t) { return t.dim() < 2 ? t.reshape({t.numel(), 1}) : t; }), 1);
}
BRAID_LIST(Tensor, column_stack)
Tensor row_stack(std::span<const Tensor> list) { return vstack(list); }
BRAID_LIST(Tensor, row_stack)
Tensor atleast_3d(const Tensor& x) {
  if (x.dim() > 2) return x;
  if (x.dim() == 2) return x.unsqueeze(2);
  return x.reshape({1, x.numel(), 1});
}
Tensor dstack(std::span<const Tensor> list) {
  return cat(each(list, [](const Tensor& t) { return atleast_3d(t); }), 2);
}
BRAID_LIST(Tensor, dstack)
#undef BRAID_LIST

Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset,
                    const FactoryOptions& options) {
  return indices_of(tril(ones({rows, columns}, {.dtype = DType::uint8}), offset), options);
}
Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset,
                    const FactoryOptions& options) {
  return indices_of(triu(ones({rows, columns}, {.dtype = DType::uint8}), offset), options);
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t r) {
  check_shuffle("pixel_shuffle", x, 3, "upscale_factor", r);
  const std::int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1), n = count_before(x, 3);
  if (c % (r * r) != 0)
    throw ShapeError(
        str("pixel_shuffle: expected channels that ", r * r, " divides, got shape ", x.shape()));
  const std::int64_t out = c / (r * r);
  const Tensor y = x.reshape({n, out, r, r, h, w})
                       .permute({0, 1, 4, 2, 5, 3})
                       .reshape(with_end(x, 3, {out, h * r, w * r}));
  return ops::own_copy(y, x);
}
Tensor pixel_unshuffle(const Tensor& x, std::int64_t r) {
  check_shuffle("pixel_unshuffle", x, 3, "downscale_factor", r);
  const std::int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1), n = count_before(x, 3);
  if (h % r != 0 || w % r != 0)
    throw ShapeError(str("pixel_unshuffle: expected a height and a width that ", r,
                         " divides, got shape ", x.shape()));
  const Tensor y = x.reshape({n, c, h / r, r, w / r, r})
                       .permute({0, 1, 3, 5, 2, 4})
                       .reshape(with_end(x, 3, {c * r * r, h / r, w / r}));
  return ops::own_copy(y, x);
}
Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  check_shuffle("channel_shuffle", x, 3, "groups", groups);
  const std::int64_t c = x.size(1);
  if (c % groups != 0)
    throw ShapeError(
        str("channel_shuffle: expected channels that ", groups, " divides, got shape ", x.shape()));
  std::int64_t rest = 1;
  for (int d = 2; d < x.dim(); ++d) rest *= x.shape()[d];
  return ops::own_copy(
      x.reshape({x.size(0), groups, c / groups, rest}).transpose(1, 2).reshape(x.shape()), x);
}
Tensor constant_pad_nd(const Tensor& x, const IntList& padding, const Scalar& value) {
  return pad(x, padding, PadMode::constant, value.to_double());
}
std::vector<Tensor> where(const Tensor& condition) { return nonzero_numpy(condition); }

}  // namespace braid
