#pragma once
#include <cmath>

#include "cuda/device/element.cuh"

// Elementary functions of float and double under one name each. On a GPU they are the CUDA
// toolkit's accurate functions (never the fast intrinsics): float at most 2 ULP, pow 4. Products
// that must be rounded separately use `multiply`, which no compiler contracts.
namespace braid::cuda {

BRAID_DEVICE float exp_of(float x) { return ::expf(x); }
BRAID_DEVICE double exp_of(double x) { return ::exp(x); }
BRAID_DEVICE float log_of(float x) { return ::logf(x); }
BRAID_DEVICE double log_of(double x) { return ::log(x); }
BRAID_DEVICE float sqrt_of(float x) { return ::sqrtf(x); }
BRAID_DEVICE double sqrt_of(double x) { return ::sqrt(x); }
BRAID_DEVICE float tanh_of(float x) { return ::tanhf(x); }
BRAID_DEVICE double tanh_of(double x) { return ::tanh(x); }
BRAID_DEVICE float sin_of(float x) { return ::sinf(x); }
BRAID_DEVICE double sin_of(double x) { return ::sin(x); }
BRAID_DEVICE float cos_of(float x) { return ::cosf(x); }
BRAID_DEVICE double cos_of(double x) { return ::cos(x); }
BRAID_DEVICE float pow_of(float x, float y) { return ::powf(x, y); }
BRAID_DEVICE double pow_of(double x, double y) { return ::pow(x, y); }
BRAID_DEVICE float expm1_of(float x) { return ::expm1f(x); }
BRAID_DEVICE double expm1_of(double x) { return ::expm1(x); }
BRAID_DEVICE float log1p_of(float x) { return ::log1pf(x); }
BRAID_DEVICE double log1p_of(double x) { return ::log1p(x); }
BRAID_DEVICE float erfc_of(float x) { return ::erfcf(x); }
BRAID_DEVICE double erfc_of(double x) { return ::erfc(x); }
BRAID_DEVICE float fmod_of(float x, float y) { return ::fmodf(x, y); }
BRAID_DEVICE double fmod_of(double x, double y) { return ::fmod(x, y); }
BRAID_DEVICE float floor_of(float x) { return ::floorf(x); }
BRAID_DEVICE double floor_of(double x) { return ::floor(x); }
BRAID_DEVICE float abs_of(float x) { return ::fabsf(x); }
BRAID_DEVICE double abs_of(double x) { return ::fabs(x); }
/// For negative x it is e^x / (1 + e^x), which stays accurate down to the subnormals.
template <class A> BRAID_DEVICE A sigmoid_of(A x) {
  const A e = exp_of(-abs_of(x));
  return (x >= A(0) ? A(1) : e) / (e + A(1));
}

#if defined(__CUDA_ARCH__)
BRAID_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }
BRAID_DEVICE double multiply(double a, double b) { return __dmul_rn(a, b); }
#else
BRAID_DEVICE float multiply(float a, float b) { return a * b; }
BRAID_DEVICE double multiply(double a, double b) { return a * b; }
#endif

template <class A> BRAID_DEVICE bool is_nan(A x) { return x != x; }

/// The lowest and highest numbers, or infinities where the type has them; without <limits>, whose
/// functions are host functions.
template <class A> BRAID_DEVICE A lowest() {
  if constexpr (std::is_floating_point_v<A>) return static_cast<A>(-HUGE_VAL);
  else return static_cast<A>(INT64_MIN);
}
template <class A> BRAID_DEVICE A highest() {
  if constexpr (std::is_floating_point_v<A>) return static_cast<A>(HUGE_VAL);
  else return static_cast<A>(INT64_MAX);
}

}  // namespace braid::cuda
