#include <braid/core/ops/reduce.hpp>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/reduce.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// The dims of a reduction, with the strides of the kept and of the reduced ones.
struct Plan : ops::ReducedDims {
  Plan(const char* op, const Tensor& x, const IntList& dims) : ReducedDims(op, x, dims) {
    for (int d = 0; d < x.dim(); ++d) {
      if (over[d]) over_sizes.push_back(x.shape()[d]), over_strides.push_back(x.strides()[d]);
      else keep_strides.push_back(x.strides()[d]);
    }
  }
  Shape keep_strides, over_sizes, over_strides;
};

/// Not recorded. The result drops the reduced dims, or keeps them as 1.
Tensor reduce(const char* op, ReduceOp kind, const Tensor& x, const Plan& plan, bool keepdim,
              DType out_type, double scale) {
  Tensor y = make_tensor(keepdim ? plan.kept_dims : plan.kept, out_type, x.device());
  if (y.numel() == 0) return y;
  ReduceArgs args;
  args.op = kind;
  args.dtype = x.dtype();
  args.out = y.id()->data();
  args.x = x.id()->data();
  args.scale = scale;
  const Shape dense = contiguous_strides(plan.kept);
  ops::fill_loop(args.keep, plan.kept, {&dense, &plan.keep_strides}, 0);
  ops::fill_loop(args.over, plan.over_sizes, {&plan.over_strides}, 1);
  launch(op, x.device(), &KernelTable::reduce, args);
  return y;
}

DType sum_type(DType t) { return is_floating(t) ? t : DType::int64; }

Tensor extreme(const char* op, ReduceOp kind, const Tensor& x, const IntList& dims, bool keepdim) {
  const Plan plan(op, x, dims);
  if (plan.count == 0)
    throw ShapeError(
        str(op, ": expected at least one element to choose from, got shape ", x.shape()));
  Tensor y = reduce(op, kind, x, plan, keepdim, x.dtype(), 1);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y,
                [sx = SavedTensor(x), sy = SavedTensor::output(y), kept = plan.kept_dims,
                 dims = Shape(dims.span())](const Tensor& dy) -> Grads {
                  const Tensor all = sx.get().detach(), best = sy.get().detach().reshape(kept);
                  // if the result is NaN, the NaNs share the gradient
                  const Tensor chosen = where(ne(best, best), ne(all, all), eq(all, best));
                  const DType t = dy.dtype(), w = statistics_type(t);  // float16 has no 70,000
                  const Tensor count = sum(chosen, dims, true).to(w);
                  return {chosen.to(t) * (dy.reshape(kept).to(w) / count).to(t)};
                });
}

Tensor arg_extreme(const char* op, ReduceOp kind, const Tensor& x, std::int64_t dim, bool keepdim) {
  const Plan plan(op, x, x.dim() ? Shape{wrap_dim(op, dim, x.dim())} : Shape{});
  if (plan.count == 0)
    throw ShapeError(
        str(op, ": expected at least one element to choose from, got shape ", x.shape()));
  return reduce(op, kind, x, plan, keepdim, DType::int64, 1);
}

}  // namespace

Tensor sum(const Tensor& x, const IntList& dims, bool keepdim) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return sum(full(x), dims, keepdim);
  }
  const Plan plan("sum", x, dims);
  Tensor y = reduce("sum", ReduceOp::sum, x, plan, keepdim, sum_type(x.dtype()), 1);
  if (!needs_grad({x})) return y;
  return record("sum", {x}, y,
                [shape = x.shape(), kept = plan.kept_dims](const Tensor& dy) -> Grads {
                  return {dy.reshape(kept).expand(shape)};
                });
}

Tensor mean(const Tensor& x, const IntList& dims, bool keepdim) {
  ops::check_floating("mean", x);
  const Plan plan("mean", x, dims);
  // infinite for the mean of no elements, so that the result 0 * inf is NaN
  const double scale = 1.0 / static_cast<double>(plan.count);
  Tensor y = reduce("mean", ReduceOp::sum, x, plan, keepdim, x.dtype(), scale);
  if (!needs_grad({x})) return y;
  return record(
      "mean", {x}, y,
      [shape = x.shape(), kept = plan.kept_dims, count = plan.count](const Tensor& dy) -> Grads {
        // Divided, so that a dy of n gives exactly the gradient 1 / m for n m elements.
        const DType t = dy.dtype(), w = count > 256 ? statistics_type(t) : t;
        return {div(dy.to(w), static_cast<double>(count)).to(t).reshape(kept).expand(shape)};
      });
}

Tensor amax(const Tensor& x, const IntList& dims, bool keepdim) {
  return extreme("amax", ReduceOp::max, x, dims, keepdim);
}
Tensor amin(const Tensor& x, const IntList& dims, bool keepdim) {
  return extreme("amin", ReduceOp::min, x, dims, keepdim);
}
Tensor max(const Tensor& x) { return extreme("max", ReduceOp::max, x, {}, false); }
Tensor min(const Tensor& x) { return extreme("min", ReduceOp::min, x, {}, false); }
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) {
  return arg_extreme("argmax", ReduceOp::argmax, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim) {
  return arg_extreme("argmin", ReduceOp::argmin, x, dim, keepdim);
}

Tensor argmax(const Tensor& x) { return argmax(x.detach().reshape({-1}), 0); }
Tensor argmin(const Tensor& x) { return argmin(x.detach().reshape({-1}), 0); }

namespace {

/// Returns the max or min of x as bool, or `of_nothing` where there are no elements.
Tensor truth(const char* op, ReduceOp kind, bool of_nothing, const Tensor& x, const IntList& dims,
             bool keepdim) {
  const Plan plan(op, x, dims);
  if (plan.count == 0)
    return ops::filled(keepdim ? plan.kept_dims : plan.kept, of_nothing, DType::bool_, x.device());
  const Tensor t = x.detach().to(DType::bool_);
  return reduce(op, kind, t, Plan(op, t, dims), keepdim, DType::bool_, 1);
}

}  // namespace

Tensor any(const Tensor& x, const IntList& dims, bool keepdim) {
  return truth("any", ReduceOp::max, false, x, dims, keepdim);
}
Tensor all(const Tensor& x, const IntList& dims, bool keepdim) {
  return truth("all", ReduceOp::min, true, x, dims, keepdim);
}

Tensor count_nonzero(const Tensor& x, const IntList& dims, bool keepdim) {
  const Tensor t = x.detach().to(DType::bool_);
  return reduce("count_nonzero", ReduceOp::sum, t, Plan("count_nonzero", t, dims), keepdim,
                DType::int64, 1);
}

Tensor Tensor::sum() const { return braid::sum(*this); }
Tensor Tensor::sum(const IntList& dims, bool keepdim) const {
  return braid::sum(*this, dims, keepdim);
}
Tensor Tensor::mean() const { return braid::mean(*this); }
Tensor Tensor::mean(const IntList& dims, bool keepdim) const {
  return braid::mean(*this, dims, keepdim);
}
Tensor Tensor::max() const { return braid::max(*this); }
Tensor Tensor::argmax(std::int64_t dim, bool keepdim) const {
  return braid::argmax(*this, dim, keepdim);
}

}  // namespace braid
