// The index tensors of x.index and index_put_. All dims that they select from become one, and the
// tensors become one index into it. Then gather and scatter along that dim do the work.
#include <utility>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/compare.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/rearrange.hpp>

#include "autograd/view_history.hpp"
#include "indexing.hpp"
#include "inplace.hpp"

namespace braid::ops {
namespace {

/// How dims of a view are brought together and replaced by those of the index.
struct Plan {
  Shape order;     ///< dims of the view: those before the indexed ones, these, the others
  int before = 0;  ///< number of dims before the indexed ones
  Shape merged;    ///< shape of the view in this order, with the indexed dims as one
  Shape indices;   ///< shape of the index tensors, after broadcasting
  Tensor index;    ///< [n], into the merged dim
  Shape result;    ///< merged, with the merged dim replaced by `indices`

  /// The view with the indexed dims as one. Recorded; copies if strides do not allow a view.
  [[nodiscard]] Tensor merge(const Tensor& view) const {
    return view.permute(order).reshape(merged);
  }
  /// The reverse.
  [[nodiscard]] Tensor split(const Tensor& m, const Shape& shape) const {
    Shape ordered, back = shape;
    for (int d = 0; d < order.rank(); ++d) {
      ordered.push_back(shape[order[d]]);
      back[order[d]] = d;
    }
    return m.reshape(ordered).permute(back);
  }
  [[nodiscard]] Shape with_index() const {
    Shape s = merged;
    s[before] = index.numel();
    return s;
  }
  /// The index for gather and scatter.
  [[nodiscard]] Tensor wide_index() const {
    Shape along = Shape::filled(merged.rank(), 1);
    along[before] = index.numel();
    return index.reshape(along).expand(with_index());
  }
};

/// The texts that errors of kernels begin with: a kernel keeps only a pointer.
const char* name_of_dim(int dim) {
  static const char* const names[] = {"index: dim 0", "index: dim 1", "index: dim 2",
                                      "index: dim 3", "index: dim 4", "index: dim 5",
                                      "index: dim 6", "index: dim 7"};
  static_assert(kMaxRank == std::size(names));
  return names[dim];
}

/// Returns the index with negative numbers counted from the end. Throws IndexError for one out of
/// range: in host memory now, else when the host next waits for the device. Those become `outside`.
Tensor wrapped_index(const char* op, const Sliced& part, const IndexedDims& dims, std::int64_t size,
                     std::int64_t outside) {
  const Tensor& index = dims.index;
  if (device_context(index.device()).host_memory) {
    const Tensor dense = index.contiguous();
    const auto* p = static_cast<const std::int64_t*>(dense.id()->data());
    bool negative = false;
    for (std::int64_t i = 0; i < dense.numel(); ++i) {
      if (p[i] < -size || p[i] >= size)
        throw IndexError(str(op, ": expected an index in [", -size, ", ", size - 1, "] for dim ",
                             dims.of_x, " of ", part.whole, ", got ", p[i], " at position ", i));
      negative = negative || p[i] < 0;
    }
    return negative ? where(lt(dense, 0), dense + size, dense) : dense;
  }
  // gather checks its index. A number in range counts as 0 there, so that errors show the others as
  // they are.
  const Tensor low = lt(index, -size), high = ge(index, size), bad = logical_or(low, high);
  const Tensor number = size > 0 ? where(bad, index, 0) : index;
  const Tensor none = filled({1}, 0, DType::int64, index.device()).expand({size});
  const Tensor zeros = gathered(name_of_dim(dims.of_x), none, 0, number.reshape({-1}));
  return where(bad, outside, where(lt(index, 0), index + size, index)) +
         zeros.reshape(index.shape());
}

Plan plan_of(const char* op, const Sliced& part, const Tensor& view) {
  const std::span<const IndexedDims> tensors = part.tensors;
  const NoGrad guard;
  Plan plan;
  bool indexed[kMaxRank] = {}, together = true;
  for (std::size_t j = 0; j < tensors.size(); ++j) {
    for (int d = 0; d < tensors[j].count; ++d) indexed[tensors[j].dim + d] = true;
    together = together && (j == 0 || tensors[j].dim == tensors[j - 1].dim + tensors[j - 1].count);
  }
  plan.before = together ? tensors.front().dim : 0;
  Shape& order = plan.order;
  for (int d = 0; d < plan.before; ++d) order.push_back(d);
  for (int d = 0; d < view.dim(); ++d)
    if (indexed[d]) order.push_back(d);
  for (int d = plan.before; d < view.dim(); ++d)
    if (!indexed[d]) order.push_back(d);

  std::int64_t whole = 1, all = 1;
  for (int d = 0; d < view.dim(); ++d)
    if (indexed[d] && __builtin_mul_overflow(whole, view.shape()[d], &whole))
      throw ShapeError(str(op, ": expected at most 2^63 - 1 elements in the indexed dims of ",
                           part.whole, ", got more"));
  std::vector<Tensor> parts(tensors.size());
  for (std::size_t j = tensors.size(); j-- > 0;) {
    const IndexedDims& t = tensors[j];
    // outside: so that the sum below stays negative
    parts[j] = t.index.dtype() == DType::bool_ ? places_of_true(t.index)
                                               : wrapped_index(op, part, t, view.shape()[t.dim],
                                                               all == 0 ? -1 : -whole / all - 1);
    if (all != 1) parts[j] = parts[j] * all;
    for (int d = 0; d < t.count; ++d) all *= view.shape()[t.dim + d];
  }
  for (const Tensor& one : parts) {
    (void)broadcast_shapes(op, plan.indices, one.shape());
    plan.index = plan.index.defined() ? plan.index + one : one;
    plan.indices = plan.index.shape();
  }
  plan.index = plan.index.contiguous().reshape({plan.index.numel()});
  bool in = false;
  for (const std::int64_t d : order) {
    if (!indexed[d]) {
      plan.merged.push_back(view.shape()[d]);
      plan.result.push_back(view.shape()[d]);
    } else if (!std::exchange(in, true)) {
      plan.merged.push_back(all);
      for (const std::int64_t size : plan.indices) plan.result.push_back(size);
    }
  }
  return plan;
}

/// The dim of the plan's result that dim d of the view becomes.
int place_in_result(const Plan& plan, std::size_t indexed_dims, int d) {
  int at = 0;
  while (plan.order[at] != d) ++at;
  return at < plan.before ? at : at - static_cast<int>(indexed_dims) + plan.indices.rank();
}

/// Throws ShapeError unless value broadcasts to the shape.
Tensor fitted(const char* op, const Tensor& value, const Shape& shape) {
  const Tensor v = without_leading_ones(value, shape.rank());
  if (broadcast_shapes(op, shape, v.shape()) != shape)
    throw ShapeError(str(op, ": expected a value that broadcasts to ", shape,
                         ", the shape of that part, got ", value.shape()));
  return v;
}

Tensor reversed(const Tensor& value, const Shape& shape, const std::vector<std::int64_t>& dims) {
  return dims.empty() ? value : flip(value.expand(shape), dims);
}

}  // namespace

Tensor taken(const char* op, const Sliced& part, const Tensor& view) {
  const Plan plan = plan_of(op, part, view);
  const Tensor m = plan.merge(view);
  const Tensor y = plan.before == 0 && m.is_contiguous()
                       ? pick_rows(op, m, plan.index)
                       : gathered(op, m, plan.before, plan.wide_index());
  Tensor shaped = y.reshape(plan.result);
  if (shaped.id() != y.id()) braid::detail::be_no_view(shaped);
  return shaped;
}

void put(const char* op, const Sliced& to, const Tensor& value, bool add) {
  const Tensor& view = to.view;
  if (value.dtype() != view.dtype() && braid::detail::autocasting(value.dtype(), view.dtype()))
      [[unlikely]]
    return put(op, to, value.to(view.dtype()), add);
  const std::span<const IndexedDims> tensors = to.tensors;
  if (tensors.empty()) {
    const Tensor fit = reversed(fitted(op, value, view.shape()), view.shape(),
                                {to.reversed.begin(), to.reversed.end()});
    if (add) view.add_(fit);
    else view.copy_(fit);
    return;
  }
  check_dtype(op, view, value);
  Plan plan = plan_of(op, to, view);
  // the kernel writes the view while it reads the index, which has been checked
  if (plan.index.storage() == view.storage()) plan.index = plan.index.clone();
  std::size_t indexed_dims = 0;
  for (const IndexedDims& t : tensors) indexed_dims += static_cast<std::size_t>(t.count);
  std::vector<std::int64_t> back;
  for (const int d : to.reversed) back.push_back(place_in_result(plan, indexed_dims, d));
  Tensor source = reversed(fitted(op, value, plan.result), plan.result, back)
                      .expand(plan.result)
                      .reshape(plan.with_index());
  const bool recorded = needs_grad({view, value});
  if (!recorded) {
    if (source.storage() == view.storage()) source = source.clone();
    const Tensor m = plan.merge(view);
    if (m.storage() == view.storage()) {
      scatter_values(op, m, plan.before, plan.wide_index(), source, add);
      if (view.numel()) view.storage()->bump_version();
      return;
    }
  }
  const Tensor m = scattered(op, plan.merge(view), plan.before, plan.wide_index(), source, add);
  view.copy_(plan.split(m, view.shape()));
}

}  // namespace braid::ops
