#include <braid/core/internal/kernel_args/activation.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

#define BRAID_FORMULA BRAID_DEVICE
#include "activation_formulas.hpp"

// Activations and their derivatives, in one pass each. There is one kernel per dtype and direction;
// it selects the function with a switch that does not diverge. 16-bit types are computed in float.
namespace braid::cuda {

struct ActivationNumbers {
  ActivationOp op;
  double a, b, c;
};

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

struct Activate {
  static constexpr int kAtOnce = 2;
  ActivationNumbers p;
  template <class A> BRAID_DEVICE A operator()(A x) const {
    const A a = static_cast<A>(p.a), b = static_cast<A>(p.b), c = static_cast<A>(p.c);
    switch (p.op) {
#define BRAID_ACTIVATION(name) \
  case ActivationOp::name: return activated<ActivationOp::name, Math>(x, a, b, c);
#include <braid/core/internal/activation.def>
    }
    return x;
  }
};

/// dy f'(x).
struct PullBack {
  static constexpr int kAtOnce = 2;
  ActivationNumbers p;
  template <class A> BRAID_DEVICE A operator()(A x, A dy) const {
    const A a = static_cast<A>(p.a), b = static_cast<A>(p.b), c = static_cast<A>(p.c);
    switch (p.op) {
#define BRAID_ACTIVATION(name) \
  case ActivationOp::name: return pulled_back<ActivationOp::name, Math>(x, dy, a, b, c);
#include <braid/core/internal/activation.def>
    }
    return dy;
  }
};

void activation(const ActivationArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  const ActivationNumbers numbers{args.op, args.a, args.b, args.c};
  const bool known = with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    T* const out = static_cast<T*>(args.out);
    const T* const x = static_cast<const T*>(args.x);
    if (args.dy == nullptr)
      return map("activation", Map1<E, E, Activate>{out, x, {numbers}}, args.loop, stream);
    map("activation",
        Map2<E, E, PullBack>{out, {x, T{}}, {static_cast<const T*>(args.dy), T{}}, {numbers}},
        args.loop, stream);
  });
  if (!known) fail_dtype("activation", "a floating-point dtype", args.dtype);
}

}  // namespace braid::cuda
