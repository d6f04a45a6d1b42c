#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/table_parts.hpp"

// out = f(x) for the less common functions. There is one kernel per dtype, which selects the
// function with a switch that does not diverge, instead of twenty kernels.
namespace braid::cuda {

BRAID_DEVICE float function_of(UnaryOp op, float x) {
  switch (op) {
    case UnaryOp::exp2: return ::exp2f(x);
    case UnaryOp::expm1: return ::expm1f(x);
    case UnaryOp::log1p: return ::log1pf(x);
    case UnaryOp::log2: return ::log2f(x);
    case UnaryOp::log10: return ::log10f(x);
    case UnaryOp::tan: return ::tanf(x);
    case UnaryOp::asin: return ::asinf(x);
    case UnaryOp::acos: return ::acosf(x);
    case UnaryOp::atan: return ::atanf(x);
    case UnaryOp::sinh: return ::sinhf(x);
    case UnaryOp::cosh: return ::coshf(x);
    case UnaryOp::asinh: return ::asinhf(x);
    case UnaryOp::acosh: return ::acoshf(x);
    case UnaryOp::atanh: return ::atanhf(x);
    case UnaryOp::erf: return ::erff(x);
    case UnaryOp::erfc: return ::erfcf(x);
    case UnaryOp::floor: return ::floorf(x);
    case UnaryOp::ceil: return ::ceilf(x);
    case UnaryOp::round: return ::rintf(x);
    default: return ::truncf(x);
  }
}
BRAID_DEVICE double function_of(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::exp2: return ::exp2(x);
    case UnaryOp::expm1: return ::expm1(x);
    case UnaryOp::log1p: return ::log1p(x);
    case UnaryOp::log2: return ::log2(x);
    case UnaryOp::log10: return ::log10(x);
    case UnaryOp::tan: return ::tan(x);
    case UnaryOp::asin: return ::asin(x);
    case UnaryOp::acos: return ::acos(x);
    case UnaryOp::atan: return ::atan(x);
    case UnaryOp::sinh: return ::sinh(x);
    case UnaryOp::cosh: return ::cosh(x);
    case UnaryOp::asinh: return ::asinh(x);
    case UnaryOp::acosh: return ::acosh(x);
    case UnaryOp::atanh: return ::atanh(x);
    case UnaryOp::erf: return ::erf(x);
    case UnaryOp::erfc: return ::erfc(x);
    case UnaryOp::floor: return ::floor(x);
    case UnaryOp::ceil: return ::ceil(x);
    case UnaryOp::round: return ::rint(x);
    default: return ::trunc(x);
  }
}

struct Function {
  static constexpr int kAtOnce = 1;  // the switch is not unrolled
  UnaryOp op;
  template <class A> BRAID_DEVICE A operator()(A x) const { return function_of(op, x); }
};

void unary_function(const UnaryArgs& args, Stream& stream) {
  const bool known = with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    map("unary",
        Map1<E, E, Function>{static_cast<T*>(args.out), static_cast<const T*>(args.x), {args.op}},
        args.loop, stream);
  });
  if (!known) fail_dtype("unary", "a floating-point dtype", args.dtype);
}

}  // namespace braid::cuda
