#pragma once
#include <braid/core/internal/kernel_args/activation.hpp>

#include "cuda/device/math.cuh"

#define BRAID_FORMULA BRAID_DEVICE
#include "activation_formulas.hpp"

namespace braid::cuda {

/// The functions of the formulas.
struct Math {
  template <class A> using Lane = A;
  template <class A> static BRAID_DEVICE A splat(A x) { return x; }
  template <class A> static BRAID_DEVICE A abs(A x) { return abs_of(x); }
  template <class A> static BRAID_DEVICE A exp(A x) { return exp_of(x); }
  template <class A> static BRAID_DEVICE A log(A x) { return log_of(x); }
  template <class A> static BRAID_DEVICE A expm1(A x) { return expm1_of(x); }
  template <class A> static BRAID_DEVICE A log1p(A x) { return log1p_of(x); }
  template <class A> static BRAID_DEVICE A erfc(A x) { return erfc_of(x); }
  template <class A> static BRAID_DEVICE A sigmoid(A x) { return sigmoid_of(x); }
  template <class A> static BRAID_DEVICE A gelu(A x) {
    return A(0.5) * x * erfc_of(x * A(-0.707106781186547524401));
  }
  template <class A> static BRAID_DEVICE A mish(A x) {
    // tanh(log(1 + n)) = q / (q + 2)
    const A n = exp_of(x > A(20) ? A(20) : x), q = n * (n + A(2));
    return x * (q / (q + A(2)));
  }
  template <class A> static BRAID_DEVICE A mish_pulled_back(A x, A dy) {
    const A c = x > A(20) ? A(20) : x, n = exp_of(c), q = n * (n + A(2)), w = q + A(2);
    // two quotients, because w² would overflow
    return dy * (q / w + c * (n / w) * (A(4) * (n + A(1)) / w));
  }
};

}  // namespace braid::cuda
