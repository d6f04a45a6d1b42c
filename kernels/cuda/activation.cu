#include <braid/core/internal/kernel_args/activation.hpp>

#include "cuda/device/activation_math.cuh"
#include "cuda/device/map.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Activations and their derivatives, in one pass each. There is one kernel per dtype and direction;
// it selects the function with a switch that does not diverge. 16-bit types are computed in float.
namespace braid::cuda {

struct ActivationNumbers {
  ActivationOp op;
  double a, b, c;
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
