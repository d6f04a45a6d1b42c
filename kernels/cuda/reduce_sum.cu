#include "cuda/device/reduce.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

/// Integers are summed in unsigned numbers, which wrap around.
struct WriteInteger {
  std::int64_t* out;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, unsigned long long sum) const { out[offsets_of(keep, e).at[0]] = static_cast<std::int64_t>(sum); }
};

void reduce_sum(const ReduceArgs& args, Stream& stream) {
  with_element(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using V = std::conditional_t<E::kFloating, typename E::A, unsigned long long>;
    const LoadTensor<E, V> load{static_cast<const T*>(args.x), make_loop<1>(args.keep, 1), make_loop<1>(args.over, 1)};
    const bool columns = by_columns(args);
    if constexpr (E::kFloating) {
      const WriteSum<E> write{static_cast<T*>(args.out), args.scale, make_loop<1>(args.keep)};
      reduce_all("sum", SumReducer<V>{}, load, write, args.keep.n, args.over.n, columns, stream);
    } else {
      const WriteInteger write{static_cast<std::int64_t*>(args.out), make_loop<1>(args.keep)};
      reduce_all("sum", SumReducer<V>{}, load, write, args.keep.n, args.over.n, columns, stream);
    }
  });
}

}  // namespace braid::cuda
