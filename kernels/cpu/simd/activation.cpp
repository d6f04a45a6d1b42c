#include <braid/core/kernel_args/activation.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/c_math.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/through_float.hpp"

// Activations and their derivatives, in one pass each. Smooth functions are computed in double (the
// tails of gelu and mish are differences of close numbers) and rounded once. Piecewise functions,
// silu and softsign are computed in the type itself. 16-bit types are computed in float.
namespace braid::cpu::BRAID_ISA {
namespace {

struct Numbers {
  double a, b, c;
};

/// The functions in double whose accuracy suffices for float results, and those for float64
/// results.
struct ForFloat {
  static BRAID_INLINE VD expm1(VD x) { return wide::expm1(x); }
  static BRAID_INLINE VD log1p(VD x) { return wide::log1p(x); }
  static BRAID_INLINE VD erfc(VD x) { return wide::erfc(x); }
};
struct ForDouble {
  static BRAID_INLINE VD expm1(VD x) { return each_lane(x, &::expm1); }
  static BRAID_INLINE VD log1p(VD x) { return each_lane(x, &::log1p); }
  static BRAID_INLINE VD erfc(VD x) { return each_lane(x, &::erfc); }
};

constexpr bool is_straight(ActivationOp op) {
  return op == ActivationOp::leaky_relu || op == ActivationOp::hardtanh ||
         op == ActivationOp::clamp || op == ActivationOp::hardsigmoid ||
         op == ActivationOp::hardswish;
}
constexpr bool is_computed_in_double(ActivationOp op) {
  return !is_straight(op) && op != ActivationOp::silu && op != ActivationOp::softsign;
}

constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1, kRootTwoOverPi = 0x1.9884533d43651p-1,
                 kOneOverRootTwoPi = 0x1.9884533d43651p-2, kCubic = 0.044715;

/// Twice the argument of gelu_tanh's tanh: (1 + tanh u) / 2 is sigmoid(2 u).
BRAID_INLINE VD twice_u(VD x) { return x * (x * x * kCubic + 1.0) * (2 * kRootTwoOverPi); }
/// Clamps x to [low, high]; a NaN stays a NaN.
template <class V> BRAID_INLINE V between(V x, Lane<V> low, Lane<V> high) {
  x = x < low ? splat<V>(low) : x;
  return x > high ? splat<V>(high) : x;
}
/// True where low < x < high; an infinite bound does not limit.
template <class V> BRAID_INLINE auto is_inside(V x, Lane<V> low, Lane<V> high) {
  constexpr Lane<V> inf = __builtin_huge_val();
  return ((x > low) | (splat<V>(low) == -inf)) & ((x < high) | (splat<V>(high) == inf));
}

template <ActivationOp op, class F, class V> BRAID_INLINE V value(V x, const Numbers& p) {
  using L = Lane<V>;
  const L a = static_cast<L>(p.a), b = static_cast<L>(p.b);
  if constexpr (op == ActivationOp::gelu) return x * F::erfc(x * -kRootHalf) * 0.5;
  else if constexpr (op == ActivationOp::gelu_tanh) return x * sigmoid(twice_u(x));
  else if constexpr (op == ActivationOp::silu) return x * sigmoid(x);
  else if constexpr (op == ActivationOp::softplus)
    return x * p.a > p.b ? x : F::log1p(exp(x * p.a)) / p.a;
  else if constexpr (op == ActivationOp::elu) return x <= 0.0 ? F::expm1(x * p.c) * p.a : x * p.b;
  else if constexpr (op == ActivationOp::leaky_relu) return x > V{} ? x : x * a;
  else if constexpr (op == ActivationOp::hardtanh || op == ActivationOp::clamp)
    return between(x, a, b);
  else if constexpr (op == ActivationOp::hardsigmoid) return between(x + L{3}, L{0}, L{6}) / L{6};
  else if constexpr (op == ActivationOp::hardswish) return x * between(x + L{3}, L{0}, L{6}) / L{6};
  else if constexpr (op == ActivationOp::mish) {
    // tanh(log(1 + n)) = q / (q + 2)
    const V n = exp(x > 40.0 ? splat<V>(40.0) : x), q = n * (n + 2.0);
    return x * (q / (q + 2.0));
  } else if constexpr (op == ActivationOp::logsigmoid) {
    return (x < 0.0 ? x : (x == x ? V{} : x)) - F::log1p(exp(-magnitude_of(x)));
  } else {
    static_assert(op == ActivationOp::softsign);
    return x / (magnitude_of(x) + L{1});
  }
}

/// Returns dy f'(x).
template <ActivationOp op, class F, class V>
BRAID_INLINE V pulled_back(V x, V dy, const Numbers& p) {
  using L = Lane<V>;
  const L a = static_cast<L>(p.a), b = static_cast<L>(p.b);
  if constexpr (op == ActivationOp::gelu)
    return dy * (F::erfc(x * -kRootHalf) * 0.5 + x * exp(x * x * -0.5) * kOneOverRootTwoPi);
  else if constexpr (op == ActivationOp::gelu_tanh) {
    const V s = sigmoid(twice_u(x));
    return dy * (s + x * s * (1.0 - s) * (x * x * (3 * kCubic) + 1.0) * (2 * kRootTwoOverPi));
  } else if constexpr (op == ActivationOp::silu) {
    const V s = sigmoid(x);
    return dy * s * (x * (L{1} - s) + L{1});
  } else if constexpr (op == ActivationOp::softplus)
    return x * p.a > p.b ? dy : dy * sigmoid(x * p.a);
  else if constexpr (op == ActivationOp::elu)
    return x <= 0.0 ? dy * exp(x * p.c) * (p.a * p.c) : dy * p.b;
  else if constexpr (op == ActivationOp::leaky_relu) return x > V{} ? dy : dy * a;
  else if constexpr (op == ActivationOp::hardtanh) return ((x <= a) | (x >= b)) ? V{} : dy;
  else if constexpr (op == ActivationOp::clamp) return is_inside(x, a, b) ? dy : V{};
  else if constexpr (op == ActivationOp::hardsigmoid)
    return ((x > L{-3}) & (x < L{3})) ? dy / L{6} : V{};
  else if constexpr (op == ActivationOp::hardswish)
    return x <= L{-3} ? V{} : (x < L{3} ? dy * (x / L{3} + L{1} / 2) : dy);
  else if constexpr (op == ActivationOp::mish) {
    const V c = x > 40.0 ? splat<V>(40.0) : x, n = exp(c), q = n * (n + 2.0), w = q + 2.0;
    return dy * (q / w + c * n * 4.0 * (n + 1.0) / (w * w));
  } else if constexpr (op == ActivationOp::logsigmoid) {
    return dy * sigmoid(-x);
  } else {
    const V w = magnitude_of(x) + L{1};
    return dy / (w * w);
  }
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
    case ActivationOp::gelu: return kernels_for<ActivationOp::gelu>(backward);
    case ActivationOp::gelu_tanh: return kernels_for<ActivationOp::gelu_tanh>(backward);
    case ActivationOp::silu: return kernels_for<ActivationOp::silu>(backward);
    case ActivationOp::softplus: return kernels_for<ActivationOp::softplus>(backward);
    case ActivationOp::elu: return kernels_for<ActivationOp::elu>(backward);
    case ActivationOp::leaky_relu: return kernels_for<ActivationOp::leaky_relu>(backward);
    case ActivationOp::hardtanh: return kernels_for<ActivationOp::hardtanh>(backward);
    case ActivationOp::clamp: return kernels_for<ActivationOp::clamp>(backward);
    case ActivationOp::hardsigmoid: return kernels_for<ActivationOp::hardsigmoid>(backward);
    case ActivationOp::hardswish: return kernels_for<ActivationOp::hardswish>(backward);
    case ActivationOp::mish: return kernels_for<ActivationOp::mish>(backward);
    case ActivationOp::logsigmoid: return kernels_for<ActivationOp::logsigmoid>(backward);
    default: return kernels_for<ActivationOp::softsign>(backward);
  }
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
