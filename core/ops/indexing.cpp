// x.index, x.index_put_, x.at, assignment to a view: what integers, slices and new dims select is
// one view. index_tensors.cpp has the index tensors.
#include "indexing.hpp"

#include <algorithm>
#include <cstring>

#include <braid/core/ops/rearrange.hpp>

#include "autograd/view_history.hpp"

namespace braid {

using indexing::Slice;
using indexing::TensorIndex;

indexing::TensorIndex::TensorIndex(const char* dots) : kind_(Kind::ellipsis) {
  if (dots == nullptr || std::strcmp(dots, "...") != 0)
    throw ArgumentError(
        str("index: expected \"...\" for an ellipsis, got \"", dots == nullptr ? "" : dots, "\""));
}

namespace ops {
namespace {

/// Builds the view of x, dim by dim.
class View {
 public:
  View(const char* op, const Tensor& x)
      : op_(op), x_(x), dense_(contiguous_strides(x.shape())), offset_(x.storage_offset()) {}

  void keep() {
    shape_.push_back(x_.shape()[next_]);
    steps_.push_back(x_.strides()[next_]);
    dense_steps_.push_back(dense_[next_]);
    ++next_;
  }
  void add_dim() {
    shape_.push_back(1);
    steps_.push_back(1);
    dense_steps_.push_back(1);
  }
  void pick(std::int64_t i) {
    const std::int64_t size = x_.shape()[next_];
    if (i < -size || i >= size)
      throw IndexError(str(op_, ": expected an index in [", -size, ", ", size - 1, "] for dim ",
                           next_, " of ", x_.shape(), ", got ", i));
    start_at(i < 0 ? i + size : i);
    ++next_;
  }
  /// Returns true if the dim is to be reversed.
  bool slice(const Slice& s) {
    const std::int64_t step = s.step(), size = x_.shape()[next_];
    if (step == 0)
      throw ArgumentError(str(op_, ": expected a step other than 0 for dim ", next_, ", got 0"));
    const bool back = step < 0;
    const auto bound = [&](const std::optional<std::int64_t>& b, std::int64_t open) {
      if (!b) return open;
      const std::int64_t i = *b >= 0 ? *b : *b < -size ? -1 : *b + size;
      return back ? std::clamp<std::int64_t>(i, -1, size - 1)
                  : std::clamp<std::int64_t>(i, 0, size);
    };
    const std::int64_t start = bound(s.start(), back ? size - 1 : 0),
                       stop = bound(s.stop(), back ? -1 : size),
                       distance = back ? start - stop : stop - start,
                       // -step would overflow for the smallest number
        stride = back ? (step == INT64_MIN ? INT64_MAX : -step) : step,
                       count = distance > 0 ? (distance - 1) / stride + 1 : 0;
    if (count > 0) start_at(back ? start - (count - 1) * stride : start);
    const std::int64_t by = count > 1 ? stride : 1;
    shape_.push_back(count);
    steps_.push_back(x_.strides()[next_] * by);
    dense_steps_.push_back(dense_[next_] * by);
    ++next_;
    return back && count > 1;
  }
  [[nodiscard]] int next() const noexcept { return next_; }
  [[nodiscard]] int rank() const noexcept { return shape_.rank(); }

  /// Returns the view. Recorded.
  [[nodiscard]] Tensor made() const {
    const bool none = shape_.numel() == 0;  // its first element may lie outside of x
    Tensor y = make_view(x_, shape_, steps_, none ? x_.storage_offset() : offset_);
    if (!needs_grad({x_})) return y;
    return record(
        op_, {x_}, y,
        [op = op_, whole = x_.shape(), steps = dense_steps_, offset = none ? 0 : dense_offset_](
            const Tensor& dy) -> Grads { return {embed(op, dy, whole, steps, offset)}; });
  }

 private:
  void start_at(std::int64_t i) {
    offset_ += i * x_.strides()[next_];
    dense_offset_ += i * dense_[next_];
  }

  const char* op_;
  const Tensor& x_;
  Shape dense_;  // strides of a gradient of x
  Shape shape_, steps_, dense_steps_;
  std::int64_t offset_, dense_offset_ = 0;
  int next_ = 0;  // dim of x
};

/// The number of dims of x that an index stands for.
int dims_of(const TensorIndex& index) {
  if (index.is_tensor()) return index.tensor().dtype() == DType::bool_ ? index.tensor().dim() : 1;
  return index.is_slice() || index.is_integer() ? 1 : 0;
}

Tensor checked_index(const char* op, const Tensor& x, const Tensor& index) {
  // as in PyTorch, an index may be on the CPU; a number there is read there
  if (index.device() != x.device() && index.device().type() == DeviceType::cpu &&
      x.device().type() != DeviceType::cpu) {
    if (index.dim() > 0 || index.dtype() == DType::bool_)
      return checked_index(op, x, index.to(x.device()));
  } else {
    check_device(op, x, index);
  }
  if (index.dtype() != DType::int64 && index.dtype() != DType::int32 &&
      index.dtype() != DType::bool_)
    throw DTypeError(str(op, ": expected an int64, int32 or bool index, got ", index.dtype()));
  return index.dtype() == DType::int32 ? index.to(DType::int64) : index.detach();
}

}  // namespace

Sliced sliced(const char* op, const Tensor& x, Indices indices) {
  if (indices.empty()) throw ArgumentError(str(op, ": expected at least one index, got none"));
  int taken = 0, ellipses = 0;
  for (const TensorIndex& i : indices) {
    taken += dims_of(i);
    ellipses += i.is_ellipsis() ? 1 : 0;
  }
  if (ellipses > 1) throw IndexError(str(op, ": expected at most one ellipsis, got ", ellipses));
  if (taken > x.dim())
    throw IndexError(
        str(op, ": expected at most ", x.dim(), " indices for ", x.shape(), ", got ", taken));
  Sliced result{x.shape(), {}, {}, {}};
  View view(op, x);
  for (const TensorIndex& index : indices) {
    if (index.is_none()) {
      view.add_dim();
    } else if (index.is_ellipsis()) {
      for (int i = taken; i < x.dim(); ++i) view.keep();
    } else if (index.is_slice()) {
      if (view.slice(index.slice())) result.reversed.push_back(view.rank() - 1);
    } else if (index.is_integer()) {
      view.pick(index.integer());
    } else if (index.is_boolean()) {
      result.tensors.push_back(
          {view.rank(), 1, 0, filled({index.boolean() ? 1 : 0}, 0, DType::int64, x.device())});
      view.add_dim();
    } else {
      const Tensor t = checked_index(op, x, index.tensor());
      const bool mask = t.dtype() == DType::bool_;
      if (t.dim() == 0 && !mask) {
        view.pick(t.item<std::int64_t>());
        continue;
      }
      const int from = view.next(), at = view.rank(), count = mask ? t.dim() : 1;
      if (mask && t.dim() == 0) {
        result.tensors.push_back({at, 1, 0, t.reshape({1})});
        view.add_dim();
        continue;
      }
      for (int d = 0; d < count; ++d) view.keep();
      Shape covered;
      for (int d = 0; d < count; ++d) covered.push_back(x.shape()[from + d]);
      if (mask && t.shape() != covered)
        throw IndexError(str(op, ": expected a mask of shape ", covered, " for dim ", from,
                             count > 1 ? str(" to ", from + count - 1) : "", " of ", x.shape(),
                             ", got ", t.shape()));
      result.tensors.push_back({at, count, from, t});
    }
  }
  while (view.next() < x.dim()) view.keep();
  result.view = view.made();
  return result;
}

Tensor without_leading_ones(const Tensor& value, int rank) {
  Shape shape = value.shape();
  while (shape.rank() > rank && shape[0] == 1) shape.erase(0);
  return value.reshape(shape);
}

namespace {

Tensor indexed(const Tensor& x, Indices indices) {
  const Sliced part = sliced("index", x, indices);
  if (part.reversed.empty() && part.tensors.empty()) return part.view;
  Tensor y = part.view;
  if (!part.reversed.empty())
    y = flip(y, std::vector<std::int64_t>(part.reversed.begin(), part.reversed.end()));
  if (!part.tensors.empty()) y = taken("index", part, y);
  y.id()->looks_like_part = true;
  return y;
}

void put_indexed(const Tensor& x, Indices indices, const Tensor& value, bool add) {
  check_in_place("index_put_", x, value);
  const Tensor there = beside("index_put_", value, x.device());
  put("index_put_", sliced("index_put_", x, indices), there, add);
}

void put_indexed(const Tensor& x, Indices indices, const Scalar& value, bool add) {
  const char* const op = "index_put_";
  const Scalar number = fill_value(op, value, x.dtype());
  check_in_place(op, x, {});
  const Sliced part = sliced(op, x, indices);
  if (!add && part.tensors.size() == 1 && part.tensors[0].index.dtype() == DType::bool_) {
    // one mask: no need to find its true elements
    const Tensor& mask = part.tensors[0].index;
    Shape shape = mask.shape();
    for (int d = part.tensors[0].dim + mask.dim(); d < part.view.dim(); ++d) shape.push_back(1);
    part.view.masked_fill_(mask.reshape(shape), number);
    return;
  }
  put(op, part, filled({}, number, x.dtype(), x.device()), add);
}

/// Throws if what is assigned to the temporary t is lost: it is no view, and nothing else holds it.
const Tensor& assigned(const Tensor& t) {
  const TensorImpl& impl = braid::detail::defined(t.impl());
  // the graph may hold the values of a result
  const bool shared = !impl.grad_fn && !impl.looks_like_part && impl.storage->references() > 1;
  if (impl.view_kind == ViewKind::none && impl.references() == 1 && !shared)
    throw LayoutError(
        str("=: expected a view on the left, such as x[0] or x.index({Slice(1, 3)}), got ",
            impl.looks_like_part
                ? "the copy that x[index], a mask, a negative step or a reshape makes; use "
                  "index_put_"
                : "a temporary that is no view, whose new value would be lost; name it first, or "
                  "use copy_"));
  return t;
}

}  // namespace
}  // namespace ops

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return ops::indexed(*this, {indices.begin(), indices.size()});
}
Tensor Tensor::index(const std::vector<TensorIndex>& indices) const {
  return ops::indexed(*this, indices);
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value,
                                 bool accumulate) const& {
  ops::put_indexed(*this, {indices.begin(), indices.size()}, value, accumulate);
  return *this;
}
const Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& value,
                                 bool accumulate) const& {
  ops::put_indexed(*this, indices, value, accumulate);
  return *this;
}
const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value,
                                 bool accumulate) const& {
  ops::put_indexed(*this, {indices.begin(), indices.size()}, value, accumulate);
  return *this;
}
const Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value,
                                 bool accumulate) const& {
  ops::put_indexed(*this, indices, value, accumulate);
  return *this;
}

Tensor Tensor::at(const IntList& indices) const {
  if (indices.size() > static_cast<std::size_t>(dim()))
    throw IndexError(
        str("at: expected at most ", dim(), " indices for ", shape(), ", got ", indices.size()));
  ops::View view("at", *this);
  for (const std::int64_t i : indices) view.pick(i);
  while (view.next() < dim()) view.keep();
  return view.made();
}

Tensor& Tensor::operator=(const Tensor& value) && {
  const Tensor& view = ops::assigned(*this);
  view.copy_(ops::without_leading_ones(value, view.dim()));
  return *this;
}
Tensor& Tensor::operator=(const Scalar& value) && {
  ops::assigned(*this).fill_(value);
  return *this;
}

}  // namespace braid
