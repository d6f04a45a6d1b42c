#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/report.cuh"
#include "cuda/errors.hpp"
#include "cuda/table_parts.hpp"

// out = f(a, b) for the less common functions, with one kernel per dtype as in unary_functions.cu.
// A remainder is always representable, so fmod is exact; the quotient is computed from it.
namespace braid::cuda {

BRAID_DEVICE float atan2_of(float y, float x) { return ::atan2f(y, x); }
BRAID_DEVICE double atan2_of(double y, double x) { return ::atan2(y, x); }
BRAID_DEVICE float copysign_of(float m, float s) { return ::copysignf(m, s); }
BRAID_DEVICE double copysign_of(double m, double s) { return ::copysign(m, s); }

template <class A> BRAID_DEVICE A floor_of_quotient(A a, A b, A r) {
  if (b == A(0)) return a / b;
  A q = (a - r) / b;
  if (r != A(0) && (r < A(0)) != (b < A(0))) q -= A(1);
  if (q == A(0)) return copysign_of(A(0), a / b);
  const A f = floor_of(q);
  return q - f > A(0.5) ? f + A(1) : f;
}

struct FloatingFunction {
  static constexpr int kAtOnce = 1;
  BinaryOp op;
  template <class A> BRAID_DEVICE A operator()(A a, A b) const {
    if (op == BinaryOp::pow) return pow_of(a, b);
    if (op == BinaryOp::atan2) return atan2_of(a, b);
    const A r = fmod_of(a, b);
    if (op == BinaryOp::fmod) return r;
    if (op == BinaryOp::remainder) return r != A(0) && (r < A(0)) != (b < A(0)) ? r + b : r;
    return floor_of_quotient(a, b, r);
  }
};

/// Integers wrap around. A divisor of 0 is reported and gives 0. A negative exponent gives 0,
/// except for bases 1 and -1.
template <class A> struct IntegerFunction {
  static constexpr int kAtOnce = 1;
  using U = std::make_unsigned_t<A>;
  BinaryOp op;
  FaultSite site;
  BRAID_DEVICE A power(A a, A b) const {
    if constexpr (std::is_signed_v<A>) {
      if (b < A{0}) return a == A{1} ? A{1} : a == A{-1} ? ((b & 1) != 0 ? A{-1} : A{1}) : A{0};
    }
    U result = 1, base = static_cast<U>(a);
    for (U e = static_cast<U>(b); e != 0; e = static_cast<U>(e >> 1)) {
      if ((e & 1) != 0) result = static_cast<U>(result * base);
      base = static_cast<U>(base * base);
    }
    return static_cast<A>(result);
  }
  BRAID_DEVICE A operator()(A a, A b) const {
    if (op == BinaryOp::pow) return power(a, b);
    if (b == A{0}) {
      report(site, DeviceFault::division, 0, 0, 0, 0);
      return A{0};
    }
    if constexpr (std::is_signed_v<A>) {
      // the most negative number wraps to itself
      if (b == A{-1})
        return op == BinaryOp::floor_divide ? static_cast<A>(U{0} - static_cast<U>(a)) : A{0};
      const A r = static_cast<A>(a % b);
      const bool below = r != A{0} && (r < A{0}) != (b < A{0});
      if (op == BinaryOp::fmod) return r;
      if (op == BinaryOp::remainder) return below ? static_cast<A>(r + b) : r;
      return static_cast<A>(a / b - (below ? 1 : 0));
    } else {
      return static_cast<A>(op == BinaryOp::floor_divide ? a / b : a % b);
    }
  }
};

template <class E, class F> void function_map(const BinaryArgs& args, F f, Stream& stream) {
  using T = typename E::T;
  const T scalar = E::from_double(args.scalar);
  const Operand<E> a{static_cast<const T*>(args.a), scalar},
      b{static_cast<const T*>(args.b), scalar};
  map("binary", Map2<E, E, F>{static_cast<T*>(args.out), a, b, f}, args.loop, stream);
}

void binary_function(const BinaryArgs& args, Stream& stream) {
  if (with_floating(args.dtype,
                    [&]<class E>() { function_map<E>(args, FloatingFunction{args.op}, stream); }))
    return;
  if (args.op == BinaryOp::atan2) fail_dtype("binary", "a floating-point dtype", args.dtype);
  if (args.dtype == DType::bool_) fail_dtype("binary", "numbers", args.dtype);
  (void)with_integer(args.dtype, [&]<class E>() {
    if constexpr (E::kDType != DType::bool_)
      function_map<E>(args,
                      IntegerFunction<typename E::A>{
                          args.op, fault_site(device_error_record(stream),
                                              name_of_division(args.op), "divisors")},
                      stream);
  });
}

}  // namespace braid::cuda
