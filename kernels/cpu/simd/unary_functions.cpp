#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/c_math.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/table_parts.hpp"
#include "cpu/simd/through_float.hpp"
#include "cpu/simd/trig.hpp"

// out = f(x) for the less common functions: float in vectors of doubles (functions.hpp), float64
// with the C library, 16-bit types in float.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr double kLog2 = 0x1.62e42fefa39efp-1, kLog10 = 0x1.26bb1bbb55516p1;

template <UnaryOp op> BRAID_INLINE VF in_float(VF x) {
  if constexpr (op == UnaryOp::exp2) return in_double(x, [](VD v) { return exp(v * kLog2); });
  else if constexpr (op == UnaryOp::expm1) return in_double(x, [](VD v) { return wide::expm1(v); });
  else if constexpr (op == UnaryOp::log1p) return in_double(x, [](VD v) { return wide::log1p(v); });
  else if constexpr (op == UnaryOp::log2)
    return in_double(x, [](VD v) { return log(v) * (1 / kLog2); });
  else if constexpr (op == UnaryOp::log10)
    return in_double(x, [](VD v) { return log(v) * (1 / kLog10); });
  else if constexpr (op == UnaryOp::asin) return in_double(x, [](VD v) { return wide::asin(v); });
  else if constexpr (op == UnaryOp::acos) return in_double(x, [](VD v) { return wide::acos(v); });
  else if constexpr (op == UnaryOp::atan) return in_double(x, [](VD v) { return wide::atan(v); });
  else if constexpr (op == UnaryOp::sinh) return in_double(x, [](VD v) { return wide::sinh(v); });
  else if constexpr (op == UnaryOp::cosh) return in_double(x, [](VD v) { return wide::cosh(v); });
  else if constexpr (op == UnaryOp::asinh) return in_double(x, [](VD v) { return wide::asinh(v); });
  else if constexpr (op == UnaryOp::acosh) return in_double(x, [](VD v) { return wide::acosh(v); });
  else if constexpr (op == UnaryOp::atanh) return in_double(x, [](VD v) { return wide::atanh(v); });
  else if constexpr (op == UnaryOp::erf) return in_double(x, [](VD v) { return wide::erf(v); });
  else if constexpr (op == UnaryOp::erfc) return in_double(x, [](VD v) { return wide::erfc(v); });
  else {
    static_assert(op == UnaryOp::tan);
    const ReducedAngle r = reduce_angle(x);
    return x == 0.0f ? x : sine_of(r, 0) / sine_of(r, 1);  // keeps the sign of -0
  }
}

template <UnaryOp op> void float_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  map_one<F32, F32>(out, in, n, [](VF x) { return in_float<op>(x); });
}

/// float64: one kernel for all functions; the function is a parameter.
using CFunction = double (*)(double);
void double_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  const CFunction f = *static_cast<const CFunction*>(parameters);
  map_one<F64, F64>(out, in, n, [f](VD x) { return each_lane(x, f); });
}

/// floor, ceil, round and trunc, computed from the nearest integer. ceil(-0.5) is -0.
template <UnaryOp op, class V> BRAID_INLINE V rounded(V x) {
  using L = Lane<V>;
  if constexpr (op == UnaryOp::round) return round_even(x);
  else if constexpr (op == UnaryOp::trunc) {
    const V m = magnitude_of(x), r = round_even(m);
    return with_sign_of(x, r > m ? r - L{1} : r);
  } else {
    const V r = round_even(x);
    if constexpr (op == UnaryOp::floor) return r > x ? r - L{1} : r;
    else return r < x ? with_sign_of(x, magnitude_of(r + L{1})) : r;
  }
}
template <class E, UnaryOp op>
void rounding_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using V = typename E::V;
  map_one<E, E>(out, in, n, [](V x) { return rounded<op>(x); });
}

struct Kernels {
  MapKernel of_float, of_double;
  CFunction function;
};
template <UnaryOp op> constexpr Kernels kernels_for(CFunction f) {
  return {&float_kernel<op>, &double_kernel, f};
}
template <UnaryOp op> constexpr Kernels rounding() {
  return {&rounding_kernel<F32, op>, &rounding_kernel<F64, op>, nullptr};
}

BRAID_INLINE Kernels find_kernels(UnaryOp op) {
  switch (op) {
    case UnaryOp::exp2: return kernels_for<UnaryOp::exp2>(&::exp2);
    case UnaryOp::expm1: return kernels_for<UnaryOp::expm1>(&::expm1);
    case UnaryOp::log1p: return kernels_for<UnaryOp::log1p>(&::log1p);
    case UnaryOp::log2: return kernels_for<UnaryOp::log2>(&::log2);
    case UnaryOp::log10: return kernels_for<UnaryOp::log10>(&::log10);
    case UnaryOp::tan: return kernels_for<UnaryOp::tan>(&::tan);
    case UnaryOp::asin: return kernels_for<UnaryOp::asin>(&::asin);
    case UnaryOp::acos: return kernels_for<UnaryOp::acos>(&::acos);
    case UnaryOp::atan: return kernels_for<UnaryOp::atan>(&::atan);
    case UnaryOp::sinh: return kernels_for<UnaryOp::sinh>(&::sinh);
    case UnaryOp::cosh: return kernels_for<UnaryOp::cosh>(&::cosh);
    case UnaryOp::asinh: return kernels_for<UnaryOp::asinh>(&::asinh);
    case UnaryOp::acosh: return kernels_for<UnaryOp::acosh>(&::acosh);
    case UnaryOp::atanh: return kernels_for<UnaryOp::atanh>(&::atanh);
    case UnaryOp::erf: return kernels_for<UnaryOp::erf>(&::erf);
    case UnaryOp::erfc: return kernels_for<UnaryOp::erfc>(&::erfc);
    case UnaryOp::floor: return rounding<UnaryOp::floor>();
    case UnaryOp::ceil: return rounding<UnaryOp::ceil>();
    case UnaryOp::round: return rounding<UnaryOp::round>();
    default: return rounding<UnaryOp::trunc>();
  }
}

}  // namespace

void unary_function(const UnaryArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("unary", "a floating-point dtype", args.dtype);
  const Kernels k = find_kernels(args.op);
  const int bytes = element_bytes(args.dtype);
  run_floating(Map{.kernel = nullptr,
                   .parameters = &k.function,
                   .loop = args.loop,
                   .out = args.out,
                   .out_bytes = bytes,
                   .inputs = 1,
                   .in = {args.x},
                   .in_bytes = {bytes},
                   .scalar = {}},
               args.dtype, k.of_float, k.of_double, stream);
}

}  // namespace braid::cpu::BRAID_ISA
