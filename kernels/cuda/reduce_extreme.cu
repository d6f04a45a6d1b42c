#include "cuda/device/reduce.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

/// A NaN on either side wins. Integers are compared as int64.
template <class A>
struct ExtremeReducer {
  using Acc = A;
  bool smallest;
  BRAID_DEVICE Acc none() const { return smallest ? highest<A>() : lowest<A>(); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const {
    if (is_nan(a)) return a;
    if (smallest) return a < b ? a : b;
    return a > b ? a : b;
  }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const { return __shfl_xor_sync(kFullWarp, value, step); }
};

template <class E>
struct WriteExtreme {
  typename E::T* out;
  DeviceLoop<1> keep;
  template <class A>
  BRAID_DEVICE void operator()(std::int64_t e, A value) const {
    out[offsets_of(keep, e).at[0]] = E::store(static_cast<typename E::A>(value));
  }
};

void reduce_extreme(const ReduceArgs& args, Stream& stream) {
  with_element(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using V = std::conditional_t<E::kFloating, typename E::A, long long>;
    const LoadTensor<E, V> load{static_cast<const T*>(args.x), make_loop<1>(args.keep, 1), make_loop<1>(args.over, 1)};
    const WriteExtreme<E> write{static_cast<T*>(args.out), make_loop<1>(args.keep)};
    const bool smallest = args.op == ReduceOp::min;
    reduce_all(smallest ? "min" : "max", ExtremeReducer<V>{smallest}, load, write, args.keep.n, args.over.n, by_columns(args), stream);
  });
}

}  // namespace braid::cuda
