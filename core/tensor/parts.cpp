#include <braid/core/ops/parts.hpp>

#include <braid/core/error.hpp>
#include <braid/core/indexing.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/gather.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/shape.hpp>

namespace braid {
namespace {

std::int64_t dim_of(const char* op, const Tensor& x, std::int64_t dim) {
  if (dim < -x.dim() || dim >= x.dim())
    throw IndexError(str(op, ": expected a dim in [", -x.dim(), ", ", x.dim(), "), got ", dim));
  return dim < 0 ? dim + x.dim() : dim;
}

std::vector<Tensor> equal_parts(const char* op, const Tensor& x, std::int64_t sections,
                                std::int64_t dim) {
  if (dim >= x.dim())
    throw ShapeError(str(op, ": expected at least ", dim + 1, " dims, got ", x.shape()));
  if (sections < 1 || x.size(dim) % sections != 0)
    throw ArgumentError(
        str(op, ": expected sections that divide ", x.size(dim), ", got ", sections));
  return tensor_split(x, sections, dim);
}

/// `:, :, index`, with the index along dim.
std::vector<indexing::TensorIndex> along(std::int64_t dim, const Tensor& index) {
  std::vector<indexing::TensorIndex> list(static_cast<std::size_t>(dim), indexing::Slice());
  list.emplace_back(index);
  return list;
}

/// A copy of x whose part is replaced.
template <class F> Tensor replaced(const Tensor& x, const Tensor& source, const F& part) {
  const Tensor y = x.clone();
  const Tensor into = part(y);
  if (into.shape() != source.shape())
    throw ShapeError(str("scatter: expected a source of the part's shape ", into.shape(), ", got ",
                         source.shape()));
  into.copy_(source);
  return y;
}

}  // namespace

std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t dim) {
  const std::int64_t d = dim_of("tensor_split", x, dim), size = x.size(d);
  if (sections < 1)
    throw ArgumentError(str("tensor_split: expected sections >= 1, got ", sections));
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < sections; ++i) {
    const std::int64_t length = size / sections + (i < size % sections ? 1 : 0);
    parts.push_back(x.narrow(d, start, length));
    start += length;
  }
  return parts;
}
std::vector<Tensor> tensor_split(const Tensor& x, const IntList& indices, std::int64_t dim) {
  const std::int64_t d = dim_of("tensor_split", x, dim);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t end : indices) {
    parts.push_back(x.slice(d, start, end));
    start = end;
  }
  parts.push_back(x.slice(d, start, x.size(d)));
  return parts;
}
std::vector<Tensor> vsplit(const Tensor& x, std::int64_t sections) {
  if (x.dim() < 2) throw ShapeError(str("vsplit: expected at least 2 dims, got ", x.shape()));
  return equal_parts("vsplit", x, sections, 0);
}
std::vector<Tensor> hsplit(const Tensor& x, std::int64_t sections) {
  return equal_parts("hsplit", x, sections, x.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> dsplit(const Tensor& x, std::int64_t sections) {
  return equal_parts("dsplit", x, sections, 2);
}

Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
  if (x.dim() == 0) {
    const int d = wrap_dim("index_copy", dim, 0);
    const Tensor slices = source.dim() == 0 ? source.reshape({1}) : source;
    return index_copy(x.reshape({1}), d, index, slices).reshape({});
  }
  const std::int64_t d = dim_of("index_copy", x, dim);
  if (index.dim() > 1)
    throw ShapeError(str("index_copy: expected an index of one dim, got ", index.shape()));
  Shape wanted = x.shape();
  wanted[d] = index.numel();
  if (source.shape() != wanted)
    throw ShapeError(str("index_copy: expected a source ", wanted, ", got ", source.shape()));
  const Tensor y = x.clone();
  y.index_put_(along(d, index.flatten()), source);
  return y;
}
Tensor index_fill(const Tensor& x, std::int64_t dim, const Tensor& index, const Scalar& value) {
  if (x.dim() == 0)
    return index_fill(x.reshape({1}), wrap_dim("index_fill", dim, 0), index, value).reshape({});
  const std::int64_t d = dim_of("index_fill", x, dim);
  if (index.dim() > 1)
    throw ShapeError(str("index_fill: expected an index of one dim, got ", index.shape()));
  const Tensor y = x.clone();
  y.index_put_(along(d, index.flatten()), value);
  return y;
}

Tensor select_scatter(const Tensor& x, const Tensor& source, std::int64_t dim, std::int64_t index) {
  return replaced(x, source, [&](const Tensor& y) { return y.select(dim, index); });
}
Tensor slice_scatter(const Tensor& x, const Tensor& source, std::int64_t dim,
                     std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                     std::int64_t step) {
  return replaced(x, source, [&](const Tensor& y) {
    return y.slice(dim, start.value_or(0), end.value_or(y.size(dim)), step);
  });
}
Tensor diagonal_scatter(const Tensor& x, const Tensor& source, std::int64_t offset,
                        std::int64_t dim1, std::int64_t dim2) {
  return replaced(x, source, [&](const Tensor& y) { return y.diagonal(offset, dim1, dim2); });
}

Tensor take_along_dim(const Tensor& x, const Tensor& index) {
  return take_along_dim(x.reshape({-1}), index.reshape({-1}), 0);
}
Tensor rot90(const Tensor& x, std::int64_t k, const IntList& dims) {
  if (dims.size() != 2) throw ArgumentError(str("rot90: expected two dims, got ", dims));
  const std::int64_t a = dim_of("rot90", x, dims[0]), b = dim_of("rot90", x, dims[1]);
  if (a == b) throw ArgumentError(str("rot90: expected two different dims, got ", dims));
  switch (((k % 4) + 4) % 4) {
    case 1: return flip(x, {b}).transpose(a, b);
    case 2: return flip(x, {a, b});
    case 3: return flip(x, {a}).transpose(a, b);
    default: return x.clone();
  }
}
Tensor sum_to_size(const Tensor& x, const Shape& shape) {
  const int extra = x.dim() - shape.rank();
  std::vector<std::int64_t> dims;
  bool fits = extra >= 0;
  for (int d = 0; fits && d < x.dim(); ++d) {
    if (d < extra || (shape[d - extra] == 1 && x.size(d) != 1)) dims.push_back(d);
    else fits = shape[d - extra] == x.size(d);
  }
  if (!fits)
    throw ShapeError(
        str("sum_to_size: expected a shape that is broadcast to ", x.shape(), ", got ", shape));
  return dims.empty() ? x : sum(x, dims, true).reshape(shape);
}
std::vector<Tensor> nonzero_numpy(const Tensor& x) {
  return nonzero(x.dim() == 0 ? x.unsqueeze(0) : x).unbind(1);
}

}  // namespace braid
