#pragma once
#include "cpu/simd/vec.hpp"

// C's functions of doubles, for float64. They are declared here because <cmath> would add inline
// functions.
extern "C" {
double sin(double);
double cos(double);
double tanh(double);
double exp2(double);
double expm1(double);
double log1p(double);
double log2(double);
double log10(double);
double tan(double);
double asin(double);
double acos(double);
double atan(double);
double sinh(double);
double cosh(double);
double asinh(double);
double acosh(double);
double atanh(double);
double erf(double);
double erfc(double);
double pow(double, double);
double atan2(double, double);
double fmod(double, double);
double floor(double);
}

namespace braid::cpu::BRAID_ISA {
namespace {

/// Applies a C function to each lane.
template <class F> BRAID_INLINE VD each_lane(VD x, F f) {
  VD y;
  for (int i = 0; i < kDoubleLanes; ++i) y[i] = f(x[i]);
  return y;
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
