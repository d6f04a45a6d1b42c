#include <braid/core/kernel_args/loop.hpp>

#include "common.hpp"
#include "images.hpp"

namespace braid::ops {

void fill_loop(Loop& loop, const Shape& shape, std::initializer_list<const TensorImpl*> operands) {
  const TensorImpl& first = **operands.begin();
  bool same = first.shape == shape && (first.contiguous || is_channels_last(first));
  for (const TensorImpl* t : operands)
    same = same && t->shape == shape && (first.contiguous ? t->contiguous : is_channels_last(*t));
  if (same) {
    loop.n = (*operands.begin())->numel;
    loop.rank = 1;
    loop.dense = true;
    loop.size[0] = loop.n;
    for (std::size_t k = 0; k < operands.size(); ++k) loop.stride[k][0] = 1;
    return;
  }
  const std::size_t count = operands.size();
  loop.n = shape.numel();
  loop.rank = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;  // its stride is never used
    std::int64_t step[Loop::kOperands];
    std::size_t k = 0;
    for (const TensorImpl* t : operands) {
      const int own = d - (shape.rank() - t->shape.rank());
      step[k++] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
    }
    bool merges = loop.rank > 0;
    for (k = 0; merges && k < count; ++k)
      merges = loop.stride[k][loop.rank - 1] == step[k] * shape[d];
    if (merges) {
      loop.size[loop.rank - 1] *= shape[d];
      for (k = 0; k < count; ++k) loop.stride[k][loop.rank - 1] = step[k];
    } else {
      loop.size[loop.rank] = shape[d];
      for (k = 0; k < count; ++k) loop.stride[k][loop.rank] = step[k];
      ++loop.rank;
    }
  }
  loop.dense = loop.rank == 1;
  for (std::size_t k = 0; loop.dense && k < count; ++k) loop.dense = loop.stride[k][0] == 1;
}

void fill_loop(Loop& loop, const Shape& sizes, std::initializer_list<const Shape*> strides,
               int first) {
  loop.n = sizes.numel();
  loop.rank = 0;
  for (int d = 0; d < sizes.rank(); ++d) {
    if (sizes[d] == 1) continue;
    bool merges = loop.rank > 0;
    int k = first;
    for (const Shape* s : strides)
      merges = merges && loop.stride[k++][loop.rank - 1] == (*s)[d] * sizes[d];
    if (merges) loop.size[loop.rank - 1] *= sizes[d];
    else loop.size[loop.rank++] = sizes[d];
    k = first;
    for (const Shape* s : strides) loop.stride[k++][loop.rank - 1] = (*s)[d];
  }
  loop.dense = loop.rank == 1;
  for (int k = first; loop.dense && k < first + static_cast<int>(strides.size()); ++k)
    loop.dense = loop.stride[k][0] == 1;
}

void check_repeated(const char* op, const Tensor& x) {
  if (x.numel() <= kMostRepeated) return;
  const std::size_t held = x.storage()->bytes() / size_of(x.dtype());
  if (static_cast<std::size_t>(x.numel()) > held)
    throw ArgumentError(str(op, ": expected at most ", kMostRepeated,
                            " elements of a view that repeats its memory, got shape ", x.shape(),
                            " over ", held, " elements"));
}

ReducedDims::ReducedDims(const char* op, const Tensor& x, const Shape& dims) {
  const Shape& shape = detail::defined(x.impl()).shape;
  for (const std::int64_t d : dims) {
    bool& one = over[wrap_dim(op, d, shape.rank())];
    if (one) throw ShapeError(str(op, ": expected each dim once, got ", dims));
    one = true;
  }
  bool none = false;
  for (int d = 0; d < shape.rank(); ++d) {
    over[d] = over[d] || dims.empty();
    kept_dims.push_back(over[d] ? 1 : shape[d]);
    if (!over[d]) kept.push_back(shape[d]);
    else if (shape[d] == 0) none = true;
    else if (__builtin_mul_overflow(count, shape[d], &count)) count = INT64_MAX;
  }
  if (none) count = 0;
  // if the result is large too, its allocation fails instead
  else if (x.numel() > kMostRepeated && kept.numel() <= kMostRepeated) check_repeated(op, x);
}

}  // namespace braid::ops
