#include <braid/core/kernel_args/reduce.hpp>

#include "cpu/simd/reduce_columns.hpp"

// Largest and smallest elements. The order of combining affects only the sign of zeros; it is the
// same as for sums.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class C> void extreme(const ReduceArgs& args, Stream& stream) {
  const DType dtype = args.dtype;
  const int bytes = element_bytes(dtype);
  if (by_columns(args) && dtype == DType::float32)
    return reduce_columns<C, F32>(args, bytes, stream,
                                  [](float value, char* out) { store(out, value); });
  if (by_columns(args) && dtype == DType::float64)
    return reduce_columns<C, F64>(args, bytes, stream,
                                  [](double value, char* out) { store(out, value); });
  reduce_rows_of<C, std::int64_t>(args, bytes, stream, [dtype]<class A>(A value, char* out) {
    if constexpr (std::is_same_v<A, std::int64_t>) {
      with_element(dtype, [&]<class E>() {
        store(out, static_cast<typename E::T>(value));
        return true;
      });
    } else if (dtype == DType::float16) {
      store(out, F16::from_double(static_cast<double>(value)));
    } else if (dtype == DType::bfloat16) {
      store(out, BF16::from_double(static_cast<double>(value)));
    } else {
      store(out, value);
    }
  });
}

}  // namespace

void reduce_extreme(const ReduceArgs& args, Stream& stream) {
  if (args.op == ReduceOp::max) extreme<Max>(args, stream);
  else extreme<Min>(args, stream);
}

}  // namespace braid::cpu::BRAID_ISA
