#include <braid/core/internal/kernel_args/reduce.hpp>

#include "cuda/device/reduce.cuh"
#include "cuda/device/reduce_load.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

/// A NaN in either operand wins. Integers are compared as int64.
template <class A> struct ExtremeReducer {
  using Acc = A;
  static constexpr int kParts = 2;
  bool smallest;
  BRAID_DEVICE Acc none() const { return smallest ? highest<A>() : lowest<A>(); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const {
    if (is_nan(a)) return a;
    if (smallest) return a < b ? a : b;
    return a > b ? a : b;
  }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const {
    return __shfl_xor_sync(kFullWarp, value, step);
  }
};

template <class E> struct WriteExtreme {
  typename E::T* out;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, typename E::A value) const {
    out[offsets_of(keep, e).at[0]] = E::store(value);
  }
};
struct WriteIntegerExtreme {
  void* out;
  DType dtype;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, long long value) const {
    const std::int64_t i = offsets_of(keep, e).at[0];
    if (dtype == DType::int64) static_cast<std::int64_t*>(out)[i] = value;
    else if (dtype == DType::int32)
      static_cast<std::int32_t*>(out)[i] = static_cast<std::int32_t>(value);
    else static_cast<std::uint8_t*>(out)[i] = static_cast<std::uint8_t>(value);
  }
};

void reduce_extreme(const ReduceArgs& args, Stream& stream) {
  const bool columns = by_columns(args), smallest = args.op == ReduceOp::min;
  const auto out = make_loop<1>(args.keep);
  const char* const op = smallest ? "min" : "max";
  const bool floating = with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    reduce_all(op, ExtremeReducer<A>{smallest}, LoadTensor<E, A>(args),
               WriteExtreme<E>{static_cast<T*>(args.out), out}, args.keep.n, args.over.n, columns,
               stream);
  });
  if (floating) return;
  using A = long long;
  reduce_all(op, ExtremeReducer<A>{smallest}, LoadIntegers<A>(args),
             WriteIntegerExtreme{args.out, args.dtype, out}, args.keep.n, args.over.n, columns,
             stream);
}

}  // namespace braid::cuda
