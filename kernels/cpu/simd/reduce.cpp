#include <braid/core/kernel_args/reduce.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/reduce_columns.hpp"

// Reductions over any dims, and the sum. max and min are in reduce_extreme.cpp, argmax and argmin
// in reduce_index.cpp.
namespace braid::cpu::BRAID_ISA {
namespace {

/// Stores scale * sum in the output's dtype, rounded once (16-bit types: to float first). Adding
/// 0.0 turns a sum of -0 into 0.
template <class E> struct WriteSum {
  double scale;
  template <class A> BRAID_INLINE void operator()(A value, char* out) const {
    store(out, E::from_double(static_cast<double>(value) * scale + 0.0));
  }
};

template <class E> void sum_columns(const ReduceArgs& args, Stream& stream) {
  reduce_columns<Sum, E>(args, static_cast<int>(sizeof(typename E::T)), stream,
                         WriteSum<E>{args.scale});
}

/// The sum of no elements is 0 * scale, so that the mean of no elements is NaN.
template <class E> void empty_sum(const ReduceArgs& args) {
  for (std::int64_t e = 0; e < args.keep.n; ++e) {
    const std::int64_t at = offset_at(args.keep, 0, e);
    if constexpr (kFloating<E>)
      static_cast<typename E::T*>(args.out)[at] = E::from_double(0.0 * args.scale);
    else static_cast<std::int64_t*>(args.out)[at] = 0;
  }
}

}  // namespace

void reduce_sum(const ReduceArgs& args, Stream& stream) {
  const DType dtype = args.dtype;
  if (dtype >= DType::float16 && by_columns(args)) {
    with_floating(dtype, [&]<class E>() {
      sum_columns<E>(args, stream);
      return true;
    });
    return;
  }
  const double scale = args.scale;
  const int out_bytes = dtype < DType::float16 ? 8 : element_bytes(dtype);
  // Integers are summed in unsigned types, which wrap around.
  reduce_rows_of<Sum, std::uint64_t>(args, out_bytes, stream,
                                     [dtype, scale]<class A>(A value, char* out) {
                                       if constexpr (std::is_same_v<A, std::uint64_t>)
                                         store(out, value);
                                       else if constexpr (std::is_same_v<A, double>)
                                         WriteSum<F64>{scale}(value, out);
                                       else if (dtype == DType::float32)
                                         WriteSum<F32>{scale}(value, out);
                                       else if (dtype == DType::float16)
                                         WriteSum<F16>{scale}(value, out);
                                       else WriteSum<BF16>{scale}(value, out);
                                     });
}

void reduce(const ReduceArgs& args, Stream& stream) {
  if (args.keep.n <= 0) return;
  if (args.over.n <= 0) {
    if (args.op != ReduceOp::sum) fail_empty_reduction("reduce");
    with_element(args.dtype, [&]<class E>() {
      empty_sum<E>(args);
      return true;
    });
    return;
  }
  switch (args.op) {
    case ReduceOp::sum: return reduce_sum(args, stream);
    case ReduceOp::max:
    case ReduceOp::min: return reduce_extreme(args, stream);
    case ReduceOp::argmax:
    case ReduceOp::argmin: return reduce_index(args, stream);
  }
}

}  // namespace braid::cpu::BRAID_ISA
