#include "cuda/device/image.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Max pooling, its gradient, and the gradient of that, with one thread per element of the result.
// The gradient is gathered from the outputs whose windows contain an element, in order, so no two
// threads add to one number.
namespace braid::cuda {

template <class E>
__global__ void __launch_bounds__(kThreads) max_pool_forward(MaxPoolArgs args, ImagePlan plan) {
  using A = typename E::A;
  using T = typename E::T;
  const Axis &down = args.axis[0], &across = args.axis[1];
  const std::int64_t step_h = down.kind == Axis::Kind::window ? down.dilation : 1,
                     step_w = across.kind == Axis::Kind::window ? across.dilation : 1;
  for (std::int64_t e = grid_thread(); e < plan.count; e += grid_threads()) {
    const ImagePlace p = place_of(plan, e);
    const T* const x = static_cast<const T*>(args.x) + plane_of(args.in, p);
    const Span rows = seen_by(down, p.h), columns = seen_by(across, p.w);
    A best = lowest<A>();
    std::int64_t index = rows.first * across.in + columns.first;
    for (std::int64_t i = rows.first; i < rows.last; i += step_h)
      for (std::int64_t j = columns.first; j < columns.last; j += step_w) {
        const A v = E::load(x[i * args.in.of[2] + j * args.in.of[3]]);
        if (v > best || is_nan(v)) best = v, index = i * across.in + j;
      }
    const std::int64_t to = p.of(args.out);
    static_cast<T*>(args.y)[to] = E::store(best);
    args.index[to] = static_cast<std::int32_t>(index);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    max_pool_gradient(MaxPoolBackwardArgs args, ImagePlan plan) {
  using A = typename E::A;
  using T = typename E::T;
  for (std::int64_t e = grid_thread(); e < plan.count; e += grid_threads()) {
    const ImagePlace p = place_of(plan, e);
    const std::int64_t from = plane_of(args.out, p);
    const Span rows = that_see(args.axis[0], p.h), columns = that_see(args.axis[1], p.w);
    const auto here = static_cast<std::int32_t>(p.h * args.axis[1].in + p.w);
    A sum = A(0);
    for (std::int64_t i = rows.first; i < rows.last; ++i)
      for (std::int64_t j = columns.first; j < columns.last; ++j) {
        const std::int64_t at = from + i * args.out.of[2] + j * args.out.of[3];
        if (args.index[at] == here) sum += E::load(static_cast<const T*>(args.dy)[at]);
      }
    static_cast<T*>(args.dx)[p.of(args.in)] = E::store(sum);
  }
}

/// Copies only bits.
template <class U>
__global__ void __launch_bounds__(kThreads)
    max_pool_at_index(MaxPoolPickArgs args, ImagePlan plan, Divider width) {
  for (std::int64_t e = grid_thread(); e < plan.count; e += grid_threads()) {
    const ImagePlace p = place_of(plan, e);
    const std::int64_t to = p.of(args.out), index = args.index[to], row = width.divide(index, true),
                       column = index - row * width.divisor;
    static_cast<U*>(args.y)[to] = static_cast<const U*>(
        args.x)[plane_of(args.in, p) + row * args.in.of[2] + column * args.in.of[3]];
  }
}

void max_pool(const MaxPoolArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("max_pool", "a floating-point dtype", args.dtype);
  const ImagePlan plan(args.n, args.c, args.axis[0].out, args.axis[1].out, args.out);
  if (plan.count <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    run("max_pool", max_pool_forward<E>, blocks_for(plan.count, kThreads), kThreads, stream, args,
        plan);
  });
}

void max_pool_backward(const MaxPoolBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("max_pool_backward", "a floating-point dtype", args.dtype);
  const ImagePlan plan(args.n, args.c, args.axis[0].in, args.axis[1].in, args.in);
  if (plan.count <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    run("max_pool_backward", max_pool_gradient<E>, blocks_for(plan.count, kThreads), kThreads,
        stream, args, plan);
  });
}

void max_pool_pick(const MaxPoolPickArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("max_pool_pick", "a floating-point dtype", args.dtype);
  const ImagePlan plan(args.n, args.c, args.axis[0].out, args.axis[1].out, args.out);
  if (plan.count <= 0) return;
  const auto pick = [&]<class U>() {
    run("max_pool_pick", max_pool_at_index<U>, blocks_for(plan.count, kThreads), kThreads, stream,
        args, plan, Divider(args.axis[1].in));
  };
  if (size_of(args.dtype) == 2) pick.template operator()<std::uint16_t>();
  else if (size_of(args.dtype) == 4) pick.template operator()<std::uint32_t>();
  else pick.template operator()<std::uint64_t>();
}

}  // namespace braid::cuda
