#include <braid/core/internal/kernel_args/activation.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/c_math.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/through_float.hpp"

#define BRAID_FORMULA BRAID_INLINE
#include "activation_formulas.hpp"

// Activations and their derivatives, in one pass each. Smooth functions are computed in double (the
// tails of gelu and mish are differences of close numbers) and rounded once. Piecewise functions,
// silu and softsign are computed in the type itself. 16-bit types are computed in float.
namespace braid::cpu::BRAID_ISA {
namespace {

struct Numbers {
  double a, b, c;
};

constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;

/// The functions of the formulas.
struct Math {
  template <class V> using Lane = cpu::BRAID_ISA::Lane<V>;
  template <class V> static BRAID_INLINE V splat(Lane<V> x) { return cpu::BRAID_ISA::splat<V>(x); }
  template <class V> static BRAID_INLINE V abs(V x) { return magnitude_of(x); }
  template <class V> static BRAID_INLINE V sigmoid(V x) { return cpu::BRAID_ISA::sigmoid(x); }
  static BRAID_INLINE VD exp(VD x) { return cpu::BRAID_ISA::exp(x); }
  static BRAID_INLINE VD log(VD x) { return cpu::BRAID_ISA::log(x); }
  static BRAID_INLINE VD mish(VD x) {
    // tanh(log(1 + n)) = q / (q + 2)
    const VD n = exp(x > 40.0 ? splat<VD>(40.0) : x), q = n * (n + 2.0);
    return x * (q / (q + 2.0));
  }
  static BRAID_INLINE VD mish_pulled_back(VD x, VD dy) {
    const VD c = x > 40.0 ? splat<VD>(40.0) : x, n = exp(c), q = n * (n + 2.0), w = q + 2.0;
    return dy * (q / w + c * n * 4.0 * (n + 1.0) / (w * w));
  }
};
/// The functions in double whose accuracy suffices for float results, and those for float64
/// results.
struct ForFloat : Math {
  static BRAID_INLINE VD expm1(VD x) { return wide::expm1(x); }
  static BRAID_INLINE VD log1p(VD x) { return wide::log1p(x); }
  static BRAID_INLINE VD erfc(VD x) { return wide::erfc(x); }
  static BRAID_INLINE VD gelu(VD x) { return x * erfc(x * -kRootHalf) * 0.5; }
};
struct ForDouble : Math {
  static BRAID_INLINE VD expm1(VD x) { return each_lane(x, &::expm1); }
  static BRAID_INLINE VD log1p(VD x) { return each_lane(x, &::log1p); }
  static BRAID_INLINE VD erfc(VD x) { return each_lane(x, &::erfc); }
  static BRAID_INLINE VD gelu(VD x) { return x * erfc(x * -kRootHalf) * 0.5; }
};

constexpr bool is_straight(ActivationOp op) {
  return op == ActivationOp::leaky_relu || op == ActivationOp::hardtanh ||
         op == ActivationOp::clamp || op == ActivationOp::hardsigmoid ||
         op == ActivationOp::hardswish;
}
constexpr bool is_computed_in_double(ActivationOp op) {
  return !is_straight(op) && op != ActivationOp::silu && op != ActivationOp::softsign;
}

template <ActivationOp op, class M, class V> BRAID_INLINE V value(V x, const Numbers& p) {
  using L = Lane<V>;
  return activated<op, M>(x, static_cast<L>(p.a), static_cast<L>(p.b), static_cast<L>(p.c));
}
/// Returns dy f'(x).
template <ActivationOp op, class M, class V>
BRAID_INLINE V pulled_back(V x, V dy, const Numbers& p) {
  using L = Lane<V>;
  return braid::pulled_back<op, M>(x, dy, static_cast<L>(p.a), static_cast<L>(p.b),
                                   static_cast<L>(p.c));
}

template <class E, ActivationOp op>
void value_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using V = typename E::V;
  const Numbers p = *static_cast<const Numbers*>(parameters);
  map_one<E, E>(out, in, n, [&](V x) {
    if constexpr (std::is_same_v<V, VD>) return value<op, ForDouble>(x, p);
    else if constexpr (is_computed_in_double(op))
      return in_double(x, [&](VD v) { return value<op, ForFloat>(v, p); });
    else return value<op, ForFloat>(x, p);
  });
}
template <class E, ActivationOp op>
void pull_back_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using V = typename E::V;
  const Numbers p = *static_cast<const Numbers*>(parameters);
  map_two<E, E>(out, in, n, [&](V x, V dy) {
    if constexpr (std::is_same_v<V, VD>) return pulled_back<op, ForDouble>(x, dy, p);
    else if constexpr (is_computed_in_double(op))
      return in_double(x, dy, [&](VD v, VD d) { return pulled_back<op, ForFloat>(v, d, p); });
    else return pulled_back<op, ForFloat>(x, dy, p);
  });
}

struct Kernels {
  MapKernel of_float, of_double;
};
template <ActivationOp op> constexpr Kernels kernels_for(bool backward) {
  return backward ? Kernels{&pull_back_kernel<F32, op>, &pull_back_kernel<F64, op>}
                  : Kernels{&value_kernel<F32, op>, &value_kernel<F64, op>};
}

BRAID_INLINE Kernels find_kernels(ActivationOp op, bool backward) {
  switch (op) {
#define BRAID_ACTIVATION(name) \
  case ActivationOp::name: return kernels_for<ActivationOp::name>(backward);
#include <braid/core/internal/activation.def>
  }
  return {};
}

}  // namespace

void activation(const ActivationArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (args.dtype < DType::float16) fail_dtype("activation", "a floating-point dtype", args.dtype);
  const bool backward = args.dy != nullptr;
  const Kernels k = find_kernels(args.op, backward);
  const Numbers numbers{args.a, args.b, args.c};
  const int bytes = element_bytes(args.dtype);
  run_floating(Map{.kernel = nullptr,
                   .parameters = &numbers,
                   .loop = args.loop,
                   .out = args.out,
                   .out_bytes = bytes,
                   .inputs = backward ? 2 : 1,
                   .in = {args.x, args.dy},
                   .in_bytes = {bytes, bytes},
                   .scalar = {}},
               args.dtype, k.of_float, k.of_double, stream);
}

}  // namespace braid::cpu::BRAID_ISA
