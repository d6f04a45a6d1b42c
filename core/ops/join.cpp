#include <braid/core/ops/join.hpp>

#include <algorithm>

#include "autograd/view_history.hpp"
#include "common.hpp"

namespace braid {

namespace {

/// Converts the tensors to their common dtype. Returns an empty list if their dtypes are equal.
std::vector<Tensor> promoted(std::span<const Tensor> tensors) {
  DType dtype = tensors.front().dtype();
  bool same = true;
  for (const Tensor& t : tensors) {
    same = same && t.dtype() == dtype;
    dtype = promote(dtype, t.dtype());
  }
  std::vector<Tensor> list;
  if (same) return list;
  for (const Tensor& t : tensors) list.push_back(t.to(dtype));
  return list;
}

/// A list that starts as empty({0}) is often joined with what comes, of whatever rank.
bool is_flat_and_empty(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

}  // namespace

Tensor cat(std::span<const Tensor> list, std::int64_t dim) {
  if (list.empty()) throw ArgumentError("cat: expected at least one tensor, got none");
  std::vector<Tensor> converted = promoted(list);
  std::span<const Tensor> tensors = converted.empty() ? list : std::span<const Tensor>(converted);
  const auto joined = std::find_if_not(tensors.begin(), tensors.end(), is_flat_and_empty);
  const Tensor& first = joined == tensors.end() ? tensors.front() : *joined;
  if (first.dim() == 0) throw ShapeError("cat: expected tensors with dimensions, got a scalar");
  const int d = wrap_dim("cat", dim, first.dim());
  Shape shape = first.shape();
  shape[d] = 0;
  if (first.dim() != 1 && std::any_of(tensors.begin(), tensors.end(), is_flat_and_empty)) {
    if (converted.empty()) converted.assign(list.begin(), list.end());
    for (Tensor& t : converted)
      if (is_flat_and_empty(t)) t = t.reshape(shape);
    tensors = converted;
  }
  bool recorded = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    ops::check_device("cat", first, t);
    Shape other = t.shape();
    if (other.rank() == shape.rank()) other[d] = shape[d];
    if (other != shape)
      throw ShapeError(str("cat: expected sizes equal to ", first.shape(), " except in dim ", d,
                           ", got ", t.shape(), " (tensor ", i, ")"));
    if (__builtin_add_overflow(shape[d], t.shape()[d], &shape[d]))
      throw ShapeError("cat: expected at most 2^63 - 1 elements in the joined dim, got more");
    recorded = recorded || needs_grad({t});
  }
  Tensor y = make_tensor(shape, first.dtype(), first.device());
  std::vector<std::int64_t> sizes;
  std::int64_t at = 0;
  for (const Tensor& t : tensors) {
    const std::int64_t size = t.shape()[d];
    if (t.numel())
      ops::copy_values(
          make_tensor_on(y.storage(), t.shape(), y.strides(), at * y.strides()[d], y.dtype()), t);
    sizes.push_back(size);
    at += size;
  }
  if (!recorded) return y;
  record_many("cat", tensors, {&y, 1}, y.device(),
              [sizes, d](std::span<const Tensor> dy, Needs needs) -> Grads {
                std::vector<Tensor> parts(sizes.size());
                std::int64_t from = 0;
                for (std::size_t i = 0; i < sizes.size(); ++i) {
                  if (needs[i]) parts[i] = dy[0].narrow(d, from, sizes[i]);
                  from += sizes[i];
                }
                return Grads(std::move(parts));
              });
  return y;
}
Tensor cat(std::initializer_list<Tensor> tensors, std::int64_t dim) {
  return cat(std::span(tensors.begin(), tensors.size()), dim);
}

Tensor stack(std::span<const Tensor> tensors, std::int64_t dim) {
  if (tensors.empty()) throw ArgumentError("stack: expected at least one tensor, got none");
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    ops::check_device("stack", tensors.front(), t);
    if (t.shape() != tensors.front().shape())
      throw ShapeError(str("stack: expected tensors of one shape, got ", tensors.front().shape(),
                           " and ", t.shape()));
    rows.push_back(t.unsqueeze(wrap_dim("stack", dim, t.dim() + 1)));
  }
  return cat(rows, wrap_dim("stack", dim, tensors.front().dim() + 1));
}
Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t dim) {
  return stack(std::span(tensors.begin(), tensors.size()), dim);
}

std::vector<Tensor> split(const Tensor& x, const IntList& sizes, std::int64_t dim) {
  if (x.dim() == 0) throw ShapeError("split: expected a tensor with dimensions, got a scalar");
  const int d = wrap_dim("split", dim, x.dim());
  std::int64_t total = 0;
  for (const std::int64_t s : sizes)
    if (s < 0 || __builtin_add_overflow(total, s, &total))
      throw ShapeError(str("split: expected sizes >= 0, got ", s));
  if (total != x.shape()[d])
    throw ShapeError(str("split: expected sizes that sum to ", x.shape()[d], " (dim ", d, " of ",
                         x.shape(), "), got ", total));
  std::int64_t from = 0;
  return ops::listed("split", static_cast<std::int64_t>(sizes.size()), [&](std::int64_t i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    from += size;
    const Tensor part = x.narrow(d, from - size, size);
    detail::be_one_of_many(part);
    return part;
  });
}

}  // namespace braid
