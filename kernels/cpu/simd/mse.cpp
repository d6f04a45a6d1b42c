#include <braid/core/kernel_args/loss.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/loaders.hpp"

// Fused mean (or sum) of squared differences of contiguous tensors, and its gradient.
namespace braid::cpu::BRAID_ISA {
namespace {

/// A source (tree.hpp) of (a - b)².
template <class E> struct SquareSource {
  using V = typename E::V;
  const typename E::T* a;
  const typename E::T* b;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const {
    const V d = E::load(a + i) - E::load(b + i);
    return d * d;
  }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    const V d = E::load_first(a + i, k) - E::load_first(b + i, k);
    return d * d;
  }
};

template <class E> void mse_of(const MseArgs& args, Stream& stream) {
  using T = typename E::T;
  const SquareSource<E> source{static_cast<const T*>(args.a), static_cast<const T*>(args.b)};
  const double total = args.n > 0 ? static_cast<double>(reduce_shared<Sum, typename E::V>(
                                        args.n, stream, [&] { return source; }))
                                  : 0.0;
  *static_cast<T*>(args.sum) = E::from_double(total * args.scale);
}

template <class E> void mse_backward_of(const MseBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* da = static_cast<T*>(args.da);
  const V factor = splat<V>(static_cast<Lane<V>>(
      2.0 * args.scale * static_cast<double>(E::load_first(static_cast<const T*>(args.dy), 1)[0])));
  const auto tile = [&](std::int64_t t) {
    std::int64_t i = t * kSharedTile;
    const std::int64_t end = i + kSharedTile < args.n ? i + kSharedTile : args.n;
    for (; i + E::kLanes <= end; i += E::kLanes)
      E::store(da + i, (E::load(a + i) - E::load(b + i)) * factor);
    if (i < end) {
      const int k = static_cast<int>(end - i);
      E::store_first(da + i, (E::load_first(a + i, k) - E::load_first(b + i, k)) * factor, k);
    }
  };
  if (args.n <= kSharedTile) tile(0);
  else parallel_for(stream, (args.n + kSharedTile - 1) / kSharedTile, tile);
}

}  // namespace

void mse(const MseArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("mse", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    mse_of<E>(args, stream);
    return true;
  });
}

void mse_backward(const MseBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("mse_backward", "a floating-point dtype", args.dtype);
  if (args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    mse_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
