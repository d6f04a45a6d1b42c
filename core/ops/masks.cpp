// masked_select, nonzero, one_hot. The shape of the result depends on values, such as the number of
// true elements, so the host waits for them.
#include <braid/core/ops/masks.hpp>

#include <algorithm>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/sort.hpp>

#include "common.hpp"

namespace braid {

Tensor ops::places_of_true(const Tensor& mask) {
  const Tensor flat = mask.detach().reshape({-1}).contiguous();
  const Device device = mask.device();
  const std::int64_t n = flat.numel();
  if (n == 0) return make_tensor({0}, DType::int64, device);
  if (device_context(device).host_memory) {
    const auto* const set = static_cast<const std::uint8_t*>(flat.id()->data());
    Tensor places = make_tensor({n - std::count(set, set + n, 0)}, DType::int64, device);
    auto* const out = static_cast<std::int64_t*>(places.id()->data());
    for (std::int64_t i = 0, k = 0; i < n && k < places.numel(); ++i) {
      out[k] = i;
      k += set[i] != 0;
    }
    return places;
  }
  // the k-th of them is the first place up to which k elements are true
  const Tensor counts = cumsum(flat, 0);
  const auto all = counts.select(0, n - 1).item<std::int64_t>();
  return searchsorted(counts, arange(1, all + 1, {.device = device}));
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
