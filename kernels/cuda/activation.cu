#include <braid/core/kernel_args/activation.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Activations and their derivatives, in one pass each. There is one kernel per dtype and direction;
// it selects the function with a switch that does not diverge. 16-bit types are computed in float.
namespace braid::cuda {

struct ActivationNumbers {
  ActivationOp op;
  double a, b, c;
};

template <class A> BRAID_DEVICE A between(A x, A low, A high) {
  x = x < low ? low : x;  // a NaN fails both comparisons and stays
  return x > high ? high : x;
}
/// Twice the argument of gelu_tanh's tanh: (1 + tanh u) / 2 is sigmoid(2 u).
template <class A> BRAID_DEVICE A twice_u(A x) {
  return x * (x * x * A(0.044715) + A(1)) * A(2 * 0.797884560802865355880);
}
constexpr double kRootHalf = 0.707106781186547524401, kOneOverRootTwoPi = 0.398942280401432677940;

struct Activate {
  static constexpr int kAtOnce = 2;
  ActivationNumbers p;
  template <class A> BRAID_DEVICE A operator()(A x) const {
    const A a = static_cast<A>(p.a), b = static_cast<A>(p.b), c = static_cast<A>(p.c);
    switch (p.op) {
      case ActivationOp::gelu: return A(0.5) * x * erfc_of(x * A(-kRootHalf));
      case ActivationOp::gelu_tanh: return x * sigmoid_of(twice_u(x));
      case ActivationOp::silu: return x * sigmoid_of(x);
      case ActivationOp::softplus: return x * a > b ? x : log1p_of(exp_of(x * a)) / a;
      case ActivationOp::elu: return x <= A(0) ? expm1_of(x * c) * a : x * b;
      case ActivationOp::leaky_relu: return x > A(0) ? x : x * a;
      case ActivationOp::hardtanh:
      case ActivationOp::clamp: return between(x, a, b);
      case ActivationOp::hardsigmoid: return between(x + A(3), A(0), A(6)) / A(6);
      case ActivationOp::hardswish: return x * between(x + A(3), A(0), A(6)) / A(6);
      case ActivationOp::mish: {
        // tanh(log(1 + n)) = q / (q + 2)
        const A n = exp_of(x > A(20) ? A(20) : x), q = n * (n + A(2));
        return x * (q / (q + A(2)));
      }
      case ActivationOp::logsigmoid: return (x > A(0) ? A(0) : x) - log1p_of(exp_of(-abs_of(x)));
      default: return x / (abs_of(x) + A(1));
    }
  }
};

/// dy f'(x).
struct PullBack {
  static constexpr int kAtOnce = 2;
  ActivationNumbers p;
  template <class A> BRAID_DEVICE A operator()(A x, A dy) const {
    const A a = static_cast<A>(p.a), b = static_cast<A>(p.b), c = static_cast<A>(p.c);
    switch (p.op) {
      case ActivationOp::gelu:
        return dy * (A(0.5) * erfc_of(x * A(-kRootHalf)) +
                     x * exp_of(x * x * A(-0.5)) * A(kOneOverRootTwoPi));
      case ActivationOp::gelu_tanh: {
        const A s = sigmoid_of(twice_u(x));
        return dy * (s + x * s * (A(1) - s) * (x * x * A(3 * 0.044715) + A(1)) *
                             A(2 * 0.797884560802865355880));
      }
      case ActivationOp::silu: {
        const A s = sigmoid_of(x);
        return dy * s * (x * (A(1) - s) + A(1));
      }
      case ActivationOp::softplus: return x * a > b ? dy : dy * sigmoid_of(x * a);
      case ActivationOp::elu: return x <= A(0) ? dy * exp_of(x * c) * (a * c) : dy * b;
      case ActivationOp::leaky_relu: return x > A(0) ? dy : dy * a;
      case ActivationOp::hardtanh: return x <= a || x >= b ? A(0) : dy;
      case ActivationOp::clamp:
        // an infinite bound does not limit
        return (x > a || a == A(-HUGE_VAL)) && (x < b || b == A(HUGE_VAL)) ? dy : A(0);
      case ActivationOp::hardsigmoid: return x > A(-3) && x < A(3) ? dy / A(6) : A(0);
      case ActivationOp::hardswish:
        return x <= A(-3) ? A(0) : x < A(3) ? dy * (x / A(3) + A(0.5)) : dy;
      case ActivationOp::mish: {
        const A c = x > A(20) ? A(20) : x, n = exp_of(c), q = n * (n + A(2)), w = q + A(2);
        // two quotients, because w² would overflow
        return dy * (q / w + c * (n / w) * (A(4) * (n + A(1)) / w));
      }
      case ActivationOp::logsigmoid: return dy * sigmoid_of(-x);
      default: {
        const A w = abs_of(x) + A(1);
        return dy / (w * w);
      }
    }
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
