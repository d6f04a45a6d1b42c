// masked_select, nonzero, one_hot. The shape of the result depends on values, such as the number of
// true elements, so the host waits for them.
#include <braid/core/ops/masks.hpp>

#include <algorithm>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/sort.hpp>

#include "common.hpp"

namespace braid {

Tensor ops::places_of_true(const Tensor& mask) {
  // topk is stable, so it returns them in this order
  const Tensor flat = mask.detach().reshape({-1});
  return topk(flat, sum(flat).item<std::int64_t>()).indices;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  ops::check_device("masked_select", x, mask);
  if (mask.dtype() != DType::bool_)
    throw DTypeError(str("masked_select: expected a bool mask, got ", mask.dtype()));
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  const Tensor all = mask.expand(shape);
  ops::check_repeated("masked_select", all);
  return ops::gathered("masked_select", x.expand(shape).reshape({-1}), 0, ops::places_of_true(all));
}

Tensor nonzero(const Tensor& x) {
  const Tensor places = ops::places_of_true(x.detach().to(DType::bool_));
  if (x.dim() == 0) return make_tensor({places.numel(), 0}, DType::int64, x.device());
  std::vector<Tensor> indices;
  for (int d = 0; d < x.dim(); ++d) {
    Shape along = Shape::filled(x.dim(), 1);
    along[d] = x.shape()[d];
    const Tensor coordinate =
        arange(along[d], {.device = x.device()}).reshape(along).expand(x.shape());
    indices.push_back(ops::gathered("nonzero", coordinate.reshape({-1}), 0, places));
  }
  return stack(indices, 1);
}

Tensor one_hot(const Tensor& index, std::int64_t classes) {
  ops::check_index("one_hot", index, index);
  if (classes < -1)
    throw ArgumentError(
        str("one_hot: expected classes >= 0, or -1 for as many as there are, got ", classes));
  if (classes == -1) {
    if (index.numel() == 0)
      throw ArgumentError(
          "one_hot: expected a number of classes for an index without elements, got -1");
    const std::int64_t largest = max(index).item<std::int64_t>();
    if (largest < 0)
      throw IndexError(str("one_hot: expected indices >= 0, got ", largest, " for the largest"));
    if (largest == INT64_MAX)
      throw IndexError(str("one_hot: expected indices below ", INT64_MAX, ", got ", largest));
    classes = largest + 1;
  }
  Shape shape = index.shape();
  shape.push_back(classes);
  const Tensor last = index.unsqueeze(-1), one = ops::filled({}, 1, DType::int64, index.device());
  return ops::scattered("one_hot", ops::filled(shape, 0, DType::int64, index.device()), -1, last,
                        one.expand(last.shape()), false);
}

}  // namespace braid
