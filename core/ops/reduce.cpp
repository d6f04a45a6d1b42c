#include <braid/core/ops/reduce.hpp>

#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Which dims are reduced, and the result's shapes.
struct Plan {
  Plan(const char* op, const Tensor& x, const Shape& dims) {
    const int rank = detail::defined(x.impl()).shape.rank();
    bool over[kMaxRank] = {};
    for (const std::int64_t d : dims) {
      bool& one = over[wrap_dim(op, d, rank)];
      if (one) throw ShapeError(str(op, ": expected each dim once, got ", dims));
      one = true;
    }
    for (int d = 0; d < rank; ++d) {
      const bool reduced = dims.empty() || over[d];
      kept_dims.push_back(reduced ? 1 : x.shape()[d]);
      if (reduced) {
        count *= x.shape()[d];
        over_sizes.push_back(x.shape()[d]);
        over_strides.push_back(x.strides()[d]);
      } else {
        kept.push_back(x.shape()[d]);
        keep_strides.push_back(x.strides()[d]);
      }
    }
  }
  Shape kept, kept_dims;  // without and with the reduced dims as 1
  Shape keep_strides, over_sizes, over_strides;
  std::int64_t count = 1;
};

/// A loop over `sizes` for one or two operands with these strides; neighbouring dims merge.
void fill_strided(Loop& loop, const Shape& sizes, std::initializer_list<const Shape*> strides, int first) {
  loop.n = sizes.numel();
  loop.rank = 0;
  for (int d = 0; d < sizes.rank(); ++d) {
    if (sizes[d] == 1) continue;
    bool merges = loop.rank > 0;
    int k = first;
    for (const Shape* s : strides) merges = merges && loop.stride[k++][loop.rank - 1] == (*s)[d] * sizes[d];
    if (merges) loop.size[loop.rank - 1] *= sizes[d];
    else loop.size[loop.rank++] = sizes[d];
    k = first;
    for (const Shape* s : strides) loop.stride[k++][loop.rank - 1] = (*s)[d];
  }
  loop.dense = loop.rank == 1;
  for (int k = first; loop.dense && k < first + static_cast<int>(strides.size()); ++k) loop.dense = loop.stride[k][0] == 1;
}

/// Without history; the result has the reduced dims dropped or kept as 1.
Tensor reduce(const char* op, ReduceOp kind, const Tensor& x, const Plan& plan, bool keepdim, DType out_type, double scale) {
  Tensor y = make_tensor(keepdim ? plan.kept_dims : plan.kept, out_type, x.device());
  if (y.numel() == 0) return y;
  ReduceArgs args;
  args.op = kind;
  args.dtype = x.dtype();
  args.out = y.id()->data();
  args.x = x.id()->data();
  args.scale = scale;
  const Shape dense = contiguous_strides(plan.kept);
  fill_strided(args.keep, plan.kept, {&dense, &plan.keep_strides}, 0);
  fill_strided(args.over, plan.over_sizes, {&plan.over_strides}, 1);
  launch(op, x.device(), &KernelTable::reduce, args);
  return y;
}

DType sum_type(DType t) { return is_floating(t) ? t : DType::int64; }

Tensor extreme(const char* op, ReduceOp kind, const Tensor& x, const Shape& dims, bool keepdim) {
  const Plan plan(op, x, dims);
  if (plan.count == 0) throw ShapeError(str(op, ": expected at least one element to choose from, got shape ", x.shape()));
  Tensor y = reduce(op, kind, x, plan, keepdim, x.dtype(), 1);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [sx = SavedTensor(x), sy = SavedTensor::output(y), kept = plan.kept_dims, dims](const Tensor& dy) -> Grads {
    const Tensor all = sx.get().detach(), best = sy.get().detach().reshape(kept);
    const Tensor chosen = where(ne(best, best), ne(all, all), eq(all, best)).to(dy.dtype());  // a NaN was chosen among the NaNs
    return {chosen * (dy.reshape(kept) / sum(chosen, dims, true))};
  });
}

Tensor arg_extreme(const char* op, ReduceOp kind, const Tensor& x, std::int64_t dim, bool keepdim) {
  const Plan plan(op, x, x.dim() ? Shape{wrap_dim(op, dim, x.dim())} : Shape{});
  if (plan.count == 0) throw ShapeError(str(op, ": expected at least one element to choose from, got shape ", x.shape()));
  return reduce(op, kind, x, plan, keepdim, DType::int64, 1);
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim) {
  const Plan plan("sum", x, dims);
  Tensor y = reduce("sum", ReduceOp::sum, x, plan, keepdim, sum_type(x.dtype()), 1);
  if (!needs_grad({x})) return y;
  return record("sum", {x}, y, [shape = x.shape(), kept = plan.kept_dims](const Tensor& dy) -> Grads { return {dy.reshape(kept).expand(shape)}; });
}

Tensor mean(const Tensor& x, const Shape& dims, bool keepdim) {
  ops::check_floating("mean", x);
  const Plan plan("mean", x, dims);
  const double scale = 1.0 / static_cast<double>(plan.count);  // infinite for the mean of nothing: 0 times it is NaN
  Tensor y = reduce("mean", ReduceOp::sum, x, plan, keepdim, x.dtype(), scale);
  if (!needs_grad({x})) return y;
  return record("mean", {x}, y,
                [shape = x.shape(), kept = plan.kept_dims, scale](const Tensor& dy) -> Grads { return {mul(dy, scale).reshape(kept).expand(shape)}; });
}

Tensor max(const Tensor& x, const Shape& dims, bool keepdim) { return extreme("max", ReduceOp::max, x, dims, keepdim); }
Tensor min(const Tensor& x, const Shape& dims, bool keepdim) { return extreme("min", ReduceOp::min, x, dims, keepdim); }
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) { return arg_extreme("argmax", ReduceOp::argmax, x, dim, keepdim); }
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim) { return arg_extreme("argmin", ReduceOp::argmin, x, dim, keepdim); }

Tensor Tensor::sum() const { return braid::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const { return braid::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return braid::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const { return braid::mean(*this, dims, keepdim); }
Tensor Tensor::max() const { return braid::max(*this); }
Tensor Tensor::argmax(std::int64_t dim, bool keepdim) const { return braid::argmax(*this, dim, keepdim); }

}  // namespace braid
