#include <braid/core/internal/kernel_args/reduce.hpp>

#include "cuda/device/reduce.cuh"
#include "cuda/device/reduce_load.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

template <class A> struct Best {
  A value;
  long long index;  // -1: no element yet
};
/// Without padding, because copying the struct would read it uninitialised.
template <> struct Best<float> {
  float value;
  int zero;
  long long index;
};
template <class A> BRAID_DEVICE Best<A> make_best(A value, long long index) {
  if constexpr (sizeof(A) == sizeof(float)) return Best<A>{value, 0, index};
  else return Best<A>{value, index};
}

/// The first of the largest (smallest) elements; a NaN counts as both. Ties are broken by the
/// index, so the order of joining does not matter.
template <class A> struct IndexReducer {
  using Acc = Best<A>;
  static constexpr int kParts = 2;
  bool smallest;
  BRAID_DEVICE Acc none() const { return make_best(A(0), -1); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const {
    // field by field: selecting a struct would move both to local memory
    const bool first = wins(a, b);
    return make_best(first ? a.value : b.value, first ? a.index : b.index);
  }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const {
    const A other = __shfl_xor_sync(kFullWarp, value.value, step);
    const long long index = __shfl_xor_sync(kFullWarp, value.index, step);
    return make_best(other, index);
  }

 private:
  BRAID_DEVICE bool wins(const Acc& a, const Acc& b) const {
    if (a.index < 0 || b.index < 0) return b.index < 0;
    const bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && a.value != b.value) return smallest ? a.value < b.value : a.value > b.value;
    return a.index < b.index;
  }
};

/// The values of another loader with their indices.
template <class V, class L> struct LoadIndexed : L {
  using L::kPack, L::base;
  explicit LoadIndexed(const ReduceArgs& args) : L(args) {}
  BRAID_DEVICE Best<V> at(std::int64_t base, std::int64_t j) const {
    return make_best(L::at(base, j), static_cast<long long>(j));
  }
  BRAID_DEVICE void pack(std::int64_t base, std::int64_t j, Best<V> (&to)[kPack]) const {
    V values[kPack];
    L::pack(base, j, values);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = make_best(values[v], static_cast<long long>(j + v));
  }
  BRAID_DEVICE void beside(std::int64_t base, std::int64_t j, Best<V> (&to)[kPack]) const {
    V values[kPack];
    L::beside(base, j, values);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = make_best(values[v], static_cast<long long>(j));
  }
};

struct WriteIndex {
  std::int64_t* out;
  DeviceLoop<1> keep;
  template <class A> BRAID_DEVICE void operator()(std::int64_t e, Best<A> best) const {
    out[offsets_of(keep, e).at[0]] = best.index;
  }
};

template <class V, class L> void index_of(const ReduceArgs& args, Stream& stream) {
  const bool smallest = args.op == ReduceOp::argmin;
  const WriteIndex write{static_cast<std::int64_t*>(args.out), make_loop<1>(args.keep)};
  reduce_all(smallest ? "argmin" : "argmax", IndexReducer<V>{smallest}, LoadIndexed<V, L>(args),
             write, args.keep.n, args.over.n, by_columns(args), stream);
}

void reduce_index(const ReduceArgs& args, Stream& stream) {
  const bool floating = with_floating(args.dtype, [&]<class E>() {
    index_of<typename E::A, LoadTensor<E, typename E::A>>(args, stream);
  });
  if (!floating) index_of<long long, LoadIntegers<long long>>(args, stream);
}

}  // namespace braid::cuda
