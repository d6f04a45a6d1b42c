#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/loss.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/reduce.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Fused mean (or sum) of squared differences of contiguous tensors, and its gradient.
namespace braid::cuda {

template <class E> struct LoadSquare {
  static constexpr int kPack = kWidest<typename E::T>;
  static constexpr bool kSideBySide = false;
  const typename E::T* a;
  const typename E::T* b;
  bool packs;
  BRAID_DEVICE std::int64_t base(std::int64_t) const { return 0; }
  BRAID_DEVICE typename E::A at(std::int64_t, std::int64_t j) const { return square(a[j], b[j]); }
  BRAID_DEVICE void pack(std::int64_t, std::int64_t j, typename E::A (&to)[kPack]) const {
    const auto x = load_pack<kPack>(a + j), y = load_pack<kPack>(b + j);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = square(x.v[v], y.v[v]);
  }

 private:
  static BRAID_DEVICE typename E::A square(typename E::T x, typename E::T y) {
    const typename E::A d = E::load(x) - E::load(y);
    return multiply(d, d);
  }
};

/// (a - b) * factor; the factor is read from device memory: 2 * scale * dy[0].
template <class E> struct DifferenceTimes {
  double scale;
  const typename E::T* dy;
  BRAID_DEVICE typename E::A operator()(typename E::A a, typename E::A b) const {
    return (a - b) * static_cast<typename E::A>(2.0 * scale * static_cast<double>(E::load(dy[0])));
  }
};

void mse(const MseArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("mse", "a floating-point dtype", args.dtype);
  if (args.n <= 0)
    return fill(FillArgs{.dtype = args.dtype,
                         .out = args.sum,
                         .value = 0.0 * args.scale,
                         .integer = 0,
                         .loop = one_element()},
                stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* a = static_cast<const T*>(args.a);
    const T* b = static_cast<const T*>(args.b);
    const LoadSquare<E> load{a, b, is_aligned<kWidest<T>>(a) && is_aligned<kWidest<T>>(b)};
    const WriteSum<E> write{static_cast<T*>(args.sum), args.scale, make_loop<1>(one_element())};
    reduce_all("mse", SumReducer<typename E::A>{}, load, write, 1, args.n, false, stream);
  });
}

void mse_backward(const MseBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("mse_backward", "a floating-point dtype", args.dtype);
  if (args.n <= 0) return;
  Loop loop{};
  loop.rank = 1;
  loop.n = loop.size[0] = args.n;
  for (auto& stride : loop.stride) stride[0] = 1;
  loop.dense = true;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const Operand<E> a{static_cast<const T*>(args.a), T{}}, b{static_cast<const T*>(args.b), T{}};
    const DifferenceTimes<E> f{args.scale, static_cast<const T*>(args.dy)};
    map("mse_backward", Map2<E, E, DifferenceTimes<E>>{static_cast<T*>(args.da), a, b, f}, loop,
        stream);
  });
}

}  // namespace braid::cuda
