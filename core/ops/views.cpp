// Views: tensors of other shapes over the same storage. The gradient of a slicing view is embed(),
// which writes dy into zeros. The gradient of embed() is again the view.
#include <algorithm>

#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>

#include "autograd/view_history.hpp"
#include "common.hpp"

namespace braid {
namespace ops {

Tensor dense_view(const char* op, const Tensor& x, const Shape& shape, const Shape& strides,
                  std::int64_t offset) {
  const Tensor base = x.contiguous();
  Tensor y = make_view(base, shape, strides, base.storage_offset() + offset);
  if (!needs_grad({x})) return y;
  return record(op, {base}, y, [op, whole = x.shape(), strides, offset](const Tensor& dy) -> Grads {
    return {embed(op, dy, whole, strides, offset)};
  });
}

Tensor own_result(Tensor y) noexcept {
  braid::detail::be_no_view(y);
  return y;
}

Tensor own_copy(const Tensor& y, const Tensor& x) {
  if (!y.is_contiguous()) return y.contiguous();
  return y.storage() == x.storage() ? y.clone() : own_result(y);
}

Tensor embed(const char* op, const Tensor& dy, const Shape& base, const Shape& strides,
             std::int64_t offset) {
  Tensor dx = filled(base, 0, dy.dtype(), dy.device());
  copy_values(make_tensor_on(dx.storage(), dy.shape(), strides, offset, dy.dtype()), dy);
  if (!needs_grad({dy})) return dx;
  return record(op, {dy}, dx, [op, shape = dy.shape(), strides, offset](const Tensor& g) -> Grads {
    return {dense_view(op, g, shape, strides, offset)};
  });
}

namespace {

/// Returns a part of x that begins at `start` of dim `dim`, whose stride is multiplied by `step`.
/// With `drop`, removes that dim.
Tensor part(const char* op, const Tensor& x, const Shape& shape, int dim, std::int64_t start,
            std::int64_t step, bool drop) {
  Shape strides = x.strides(), dense = contiguous_strides(x.shape());
  // An empty part may begin at the end of a dim, so it keeps x's offset to stay in the storage.
  const bool none = shape.numel() == 0;
  const std::int64_t offset = x.storage_offset() + (none ? 0 : start * strides[dim]),
                     dense_offset = none ? 0 : start * dense[dim];
  strides[dim] *= step;
  dense[dim] *= step;
  if (drop) strides.erase(dim), dense.erase(dim);
  Tensor y = make_view(x, shape, strides, offset);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y,
                [op, whole = x.shape(), dense, dense_offset](const Tensor& dy) -> Grads {
                  return {embed(op, dy, whole, dense, dense_offset)};
                });
}

/// Computes the strides with which x has `shape` without a copy. Returns false if there are none.
bool view_strides(const Tensor& x, const Shape& shape, Shape& strides) {
  if (x.is_contiguous()) {
    strides = contiguous_strides(shape);
    return true;
  }
  // Splits each group of x's dims that are contiguous among themselves into a group of new dims.
  strides = Shape::filled(shape.rank(), 0);
  int to = shape.rank() - 1;
  std::int64_t run = 1, run_stride = x.dim() ? x.strides()[x.dim() - 1] : 1;
  for (int from = x.dim() - 1; from >= 0; --from) {
    run *= x.shape()[from];
    const bool ends =
        from == 0 || (x.shape()[from - 1] != 1 && x.strides()[from - 1] != run * run_stride);
    if (!ends) continue;
    std::int64_t taken = 1;
    while (to >= 0 && (taken < run || shape[to] == 1)) {
      strides[to] = taken * run_stride;
      taken *= shape[to--];
    }
    if (taken != run) return false;
    if (from > 0) run = 1, run_stride = x.strides()[from - 1];
  }
  return to < 0;
}

Shape resolved(const char* op, const Tensor& x, const Shape& asked) {
  Shape shape = asked;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = i;
      shape[i] = 1;
    }
  }
  const std::int64_t known = checked_numel(op, shape, 1);
  bool ok = open < 0 ? known == x.numel() : known != 0 && x.numel() % known == 0;
  if (ok && open >= 0) shape[open] = x.numel() / known;
  if (!ok)
    throw ShapeError(str(op, ": expected a shape of ", x.numel(), " elements, got ", asked,
                         " for a tensor of shape ", x.shape()));
  return shape;
}

Tensor reshaped(const char* op, const Tensor& x, const Shape& shape, bool may_copy) {
  if (shape == x.shape()) return x;
  Shape strides;
  Tensor base = x;
  if (x.numel() == 0) strides = contiguous_strides(shape);
  else if (!view_strides(x, shape, strides)) {
    if (!may_copy)
      throw LayoutError(str(op, ": expected a tensor whose strides allow shape ", shape,
                            ", got shape ", x.shape(), ", strides ", x.strides(), "; use reshape"));
    base = x.contiguous();
    strides = contiguous_strides(shape);
  }
  Tensor y = make_view(base, shape, strides, base.storage_offset());
  if (base.id() != x.id()) {
    y.id()->looks_like_part = true;
    braid::detail::be_no_view(y);
  }
  if (!needs_grad({base})) return y;
  return record(op, {base}, y,
                [back = x.shape()](const Tensor& dy) -> Grads { return {dy.reshape(back)}; });
}

}  // namespace
}  // namespace ops

Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  if (shape().rank() == 0)
    throw IndexError("select: expected a tensor with dimensions, got a scalar");
  const int d = wrap_dim("select", dim, shape().rank());
  const std::int64_t size = shape()[d];
  if (index < -size || index >= size)
    throw IndexError(str("select: expected an index in [", -size, ", ", size - 1, "] for dim ", d,
                         " of ", shape(), ", got ", index));
  Shape result = shape();
  result.erase(d);
  return ops::part("select", *this, result, d, index < 0 ? index + size : index, 1, true);
}
Tensor Tensor::operator[](std::int64_t index) const { return select(0, index); }
Tensor Tensor::operator[](const Tensor& index) const {
  if (index.dtype() != DType::int64 || index.device() != device()) return this->index({index});
  Shape result = index.shape();
  for (int i = 1; i < dim(); ++i) result.push_back(shape()[i]);
  Tensor y = ops::index_rows(*this, index.reshape({-1})).reshape(result);
  y.id()->looks_like_part = true;
  detail::be_no_view(y);
  return y;
}

Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t end,
                     std::int64_t step) const {
  if (shape().rank() == 0)
    throw IndexError("slice: expected a tensor with dimensions, got a scalar");
  if (step < 1) throw ArgumentError(str("slice: expected step >= 1, got ", step));
  const int d = wrap_dim("slice", dim, shape().rank());
  const std::int64_t size = shape()[d];
  const auto clamp = [size](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? (i < -size ? 0 : i + size) : i, 0, size);
  };
  start = clamp(start);
  end = clamp(end);
  Shape result = shape();
  result[d] = end > start ? (end - start - 1) / step + 1 : 0;
  return ops::part("slice", *this, result, d, start, result[d] > 1 ? step : 1, false);
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  if (shape().rank() == 0)
    throw IndexError("narrow: expected a tensor with dimensions, got a scalar");
  const int d = wrap_dim("narrow", dim, shape().rank());
  const std::int64_t size = shape()[d], first = start < 0 ? start + size : start;
  if (first < 0 || length < 0 || first > size || length > size - first)
    throw IndexError(str("narrow: expected a part of [0, ", size, ") of dim ", d, ", got start ",
                         start, ", length ", length));
  Shape result = shape();
  result[d] = length;
  return ops::part("narrow", *this, result, d, first, 1, false);
}

Tensor Tensor::permute(const IntList& dims) const {
  const int rank = shape().rank();
  if (dims.size() != static_cast<std::size_t>(rank))
    throw ShapeError(str("permute: expected ", rank, " dims, got ", dims));
  Shape result, steps, inverse = Shape::filled(rank, -1);
  for (int i = 0; i < rank; ++i) {
    const int d = wrap_dim("permute", dims[static_cast<std::size_t>(i)], rank);
    if (inverse[d] >= 0) throw ShapeError(str("permute: expected each dim once, got ", dims));
    inverse[d] = i;
    result.push_back(shape()[d]);
    steps.push_back(strides()[d]);
  }
  Tensor y = make_view(*this, result, steps, storage_offset());
  if (!needs_grad({*this})) return y;
  return record("permute", {*this}, y,
                [inverse](const Tensor& dy) -> Grads { return {dy.permute(inverse)}; });
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  const int rank = shape().rank(), i = wrap_dim("transpose", a, rank),
            j = wrap_dim("transpose", b, rank);
  Shape dims;
  for (int d = 0; d < rank; ++d) dims.push_back(d == i ? j : d == j ? i : d);
  return permute(dims);
}

Tensor Tensor::t() const {
  if (dim() > 2) throw ShapeError(str("t: expected at most 2 dimensions, got ", shape()));
  return dim() < 2 ? *this : transpose(0, 1);
}

Tensor Tensor::reshape(const Shape& asked) const {
  return ops::reshaped("reshape", *this, ops::resolved("reshape", *this, asked), true);
}
Tensor Tensor::view(const Shape& asked) const {
  return ops::reshaped("view", *this, ops::resolved("view", *this, asked), false);
}

Tensor Tensor::flatten(std::int64_t start, std::int64_t end) const {
  const int rank = shape().rank(), a = wrap_dim("flatten", start, rank),
            b = wrap_dim("flatten", end, rank);
  if (a > b)
    throw ShapeError(
        str("flatten: expected start <= end, got ", start, " and ", end, " for ", shape()));
  if (rank == 0) return reshape({1});
  Shape result;
  for (int d = 0; d < rank; ++d) {
    if (d > a && d <= b) result[a] *= shape()[d];
    else result.push_back(shape()[d]);
  }
  return ops::reshaped("flatten", *this, result, true);
}

Tensor Tensor::squeeze(std::int64_t dim) const {
  const int d = wrap_dim("squeeze", dim, shape().rank());
  if (shape().rank() == 0 || shape()[d] != 1) return *this;
  Shape result = shape();
  result.erase(d);
  return ops::reshaped("squeeze", *this, result, true);
}
Tensor Tensor::squeeze() const {
  Shape result;
  for (const std::int64_t size : shape())
    if (size != 1) result.push_back(size);
  return ops::reshaped("squeeze", *this, result, true);
}
Tensor Tensor::unsqueeze(std::int64_t dim) const {
  const int d = wrap_dim("unsqueeze", dim, shape().rank() + 1);
  Shape result = shape();
  result.insert(d, 1);
  return ops::reshaped("unsqueeze", *this, result, true);
}

Tensor Tensor::expand(const Shape& asked) const {
  const int extra = asked.rank() - shape().rank();
  if (extra < 0)
    throw ShapeError(str("expand: expected at least ", shape().rank(), " sizes, got ", asked));
  Shape result = asked, steps = Shape::filled(asked.rank(), 0);
  for (int i = 0; i < asked.rank(); ++i) {
    const std::int64_t own = i < extra ? 1 : shape()[i - extra];
    if (result[i] == -1 && i >= extra) result[i] = own;
    if (result[i] < 0 || (own != 1 && own != result[i]))
      throw ShapeError(
          str("expand: expected a shape that ", shape(), " broadcasts to, got ", asked));
    if (i >= extra && (own != 1 || result[i] == 1)) steps[i] = strides()[i - extra];
  }
  if (result == shape()) return *this;
  Tensor y = make_view(*this, result, steps, storage_offset());
  if (!needs_grad({*this})) return y;
  return record("expand", {*this}, y,
                [back = shape()](const Tensor& dy) -> Grads { return {ops::sum_to(dy, back)}; });
}

}  // namespace braid
