#include "common.hpp"

namespace braid::ops {

void fill_loop(Loop& loop, const Shape& shape, std::initializer_list<const TensorImpl*> operands) {
  bool same = true;
  for (const TensorImpl* t : operands) same = same && t->contiguous && t->shape == shape;
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
    if (shape[d] == 1) continue;  // walked nowhere
    std::int64_t step[Loop::kOperands];
    std::size_t k = 0;
    for (const TensorImpl* t : operands) {
      const int own = d - (shape.rank() - t->shape.rank());
      step[k++] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
    }
    bool merges = loop.rank > 0;
    for (k = 0; merges && k < count; ++k) merges = loop.stride[k][loop.rank - 1] == step[k] * shape[d];
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

}  // namespace braid::ops
