#include "cuda/device/image.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Means of windows, resizing, and the gradients of both: one thread per element of the result,
// which sums its inputs row by row.
namespace braid::cuda {

template <class E>
__global__ void __launch_bounds__(kThreads) resample_sums(ResampleArgs args, ImagePlan plan) {
  using A = typename E::A;
  using T = typename E::T;
  const Axis &down = args.axis[0], &across = args.axis[1];
  const auto span = [&](const Axis& a, std::int64_t r) {
    return args.transposed ? that_see(a, r) : seen_by(a, r);
  };
  const auto weight = [&](const Axis& a, std::int64_t r, Span seen, std::int64_t e) {
    return static_cast<A>(args.transposed ? weight_of(a, e, seen_by(a, e), r)
                                          : weight_of(a, r, seen, e));
  };
  for (std::int64_t e = grid_thread(); e < plan.count; e += grid_threads()) {
    const ImagePlace p = place_of(plan, e);
    const T* const x = static_cast<const T*>(args.x) + plane_of(args.from, p);
    const Span rows = span(down, p.h), columns = span(across, p.w);
    A sum = A(0);
#pragma unroll 1
    for (std::int64_t i = rows.first; i < rows.last; ++i) {
      const A of_row = weight(down, p.h, rows, i);
#pragma unroll 1
      for (std::int64_t j = columns.first; j < columns.last; ++j)
        sum += of_row * weight(across, p.w, columns, j) *
               E::load(x[i * args.from.of[2] + j * args.from.of[3]]);
    }
    static_cast<T*>(args.y)[p.of(args.to)] = E::store(sum);
  }
}

void resample(const ResampleArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("resample", "a floating-point dtype", args.dtype);
  const bool t = args.transposed;
  const ImagePlan plan(args.n, args.c, t ? args.axis[0].in : args.axis[0].out,
                       t ? args.axis[1].in : args.axis[1].out, args.to);
  if (plan.count <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    run("resample", resample_sums<E>, blocks_for(plan.count, kThreads), kThreads, stream, args,
        plan);
  });
}

}  // namespace braid::cuda
