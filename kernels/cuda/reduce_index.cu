#include "cuda/device/reduce.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

template <class A>
struct Best {
  A value;
  long long index;  // -1: none yet
};
/// Without padding: a copy would read it, uninitialised.
template <>
struct Best<float> {
  float value;
  int zero;
  long long index;
};
template <class A>
BRAID_DEVICE Best<A> make_best(A value, long long index) {
  if constexpr (sizeof(A) == sizeof(float)) return Best<A>{value, 0, index};
  else return Best<A>{value, index};
}

/// The first of the largest (smallest) elements; a NaN counts as both. Ties are settled by the index, so the order of joining does not matter.
template <class A>
struct IndexReducer {
  using Acc = Best<A>;
  static constexpr int kParts = 2;
  bool smallest;
  BRAID_DEVICE Acc none() const { return make_best(A(0), -1); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.value != b.value) return (smallest ? a.value < b.value : a.value > b.value) ? a : b;
    return a.index < b.index ? a : b;
  }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const {
    const A other = __shfl_xor_sync(kFullWarp, value.value, step);
    const long long index = __shfl_xor_sync(kFullWarp, value.index, step);
    return make_best(other, index);
  }
};

/// The values of another loader with their places.
template <class V, class L>
struct LoadIndexed {
  L values;
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return values.base(e); }
  BRAID_DEVICE Best<V> at(std::int64_t base, std::int64_t j) const { return make_best(values.at(base, j), static_cast<long long>(j)); }
};

struct WriteIndex {
  std::int64_t* out;
  DeviceLoop<1> keep;
  template <class A>
  BRAID_DEVICE void operator()(std::int64_t e, Best<A> best) const {
    out[offsets_of(keep, e).at[0]] = best.index;
  }
};

template <class V, class L>
void index_of(const ReduceArgs& args, const L& values, Stream& stream) {
  const bool smallest = args.op == ReduceOp::argmin;
  const WriteIndex write{static_cast<std::int64_t*>(args.out), make_loop<1>(args.keep)};
  reduce_all(smallest ? "argmin" : "argmax", IndexReducer<V>{smallest}, LoadIndexed<V, L>{values}, write, args.keep.n, args.over.n, by_columns(args), stream);
}

void reduce_index(const ReduceArgs& args, Stream& stream) {
  const auto keep = make_loop<1>(args.keep, 1), over = make_loop<1>(args.over, 1);
  const bool floating = with_floating(args.dtype, [&]<class E>() {
    index_of<typename E::A>(args, LoadTensor<E, typename E::A>{static_cast<const typename E::T*>(args.x), keep, over}, stream);
  });
  if (!floating) index_of<long long>(args, LoadIntegers<long long>{args.x, args.dtype, keep, over}, stream);
}

}  // namespace braid::cuda
