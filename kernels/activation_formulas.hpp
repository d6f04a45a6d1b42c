#pragma once
#include <braid/core/internal/kernel_args/activation.hpp>

// The activations and their derivatives, one formula each for both backends. V is a number (CUDA)
// or a vector of numbers (CPU), whose elements are M::Lane<V>. M has the backend's functions of V:
// abs and sigmoid of any V; exp, log, expm1, log1p and erfc of what the CPU computes in double.
// The file that includes this one defines BRAID_FORMULA, which makes functions inline.
namespace braid {

/// Clamps x to [low, high]; a NaN fails both comparisons and stays.
template <class M, class V, class L = typename M::template Lane<V>>
BRAID_FORMULA V between(V x, L low, L high) {
  x = x < low ? M::template splat<V>(low) : x;
  return x > high ? M::template splat<V>(high) : x;
}
/// True where low < x < high; an infinite bound does not limit, not even a NaN.
template <class M, class V, class L = typename M::template Lane<V>>
BRAID_FORMULA auto is_inside(V x, L low, L high) {
  constexpr L inf = L(__builtin_huge_val());
  return ((x > low) | (M::template splat<V>(low) == -inf)) &
         ((x < high) | (M::template splat<V>(high) == inf));
}
/// Twice the argument of gelu_tanh's tanh: (1 + tanh u) / 2 is sigmoid(2 u).
template <class M, class V, class L = typename M::template Lane<V>> BRAID_FORMULA V twice_u(V x) {
  return x * (x * x * L(0.044715) + L(1)) * L(2 * 0.797884560802865355880);
}

/// Returns f(x).
template <ActivationOp op, class M, class V, class L = typename M::template Lane<V>>
BRAID_FORMULA V activated(V x, [[maybe_unused]] L a, [[maybe_unused]] L b, [[maybe_unused]] L c) {
  if constexpr (op == ActivationOp::gelu) return M::gelu(x);
  else if constexpr (op == ActivationOp::gelu_tanh) return x * M::sigmoid(twice_u<M>(x));
  else if constexpr (op == ActivationOp::silu) return x * M::sigmoid(x);
  else if constexpr (op == ActivationOp::softplus)
    return x * a > b ? x : M::log1p(M::exp(x * a)) / a;
  else if constexpr (op == ActivationOp::elu) return x <= L(0) ? M::expm1(x * c) * a : x * b;
  else if constexpr (op == ActivationOp::leaky_relu) return x > V{} ? x : x * a;
  else if constexpr (op == ActivationOp::hardtanh || op == ActivationOp::clamp)
    return between<M>(x, a, b);
  else if constexpr (op == ActivationOp::hardsigmoid)
    return between<M>(x + L(3), L(0), L(6)) / L(6);
  else if constexpr (op == ActivationOp::hardswish)
    return x * between<M>(x + L(3), L(0), L(6)) / L(6);
  else if constexpr (op == ActivationOp::mish) return M::mish(x);
  else if constexpr (op == ActivationOp::logsigmoid)
    return (x > L(0) ? V{} : x) - M::log1p(M::exp(-M::abs(x)));
  else if constexpr (op == ActivationOp::logit) {
    const V z = between<M>(x, a, b);
    return M::log(z / (L(1) - z));
  } else {
    static_assert(op == ActivationOp::softsign);
    return x / (M::abs(x) + L(1));
  }
}

/// Returns dy f'(x).
template <ActivationOp op, class M, class V, class L = typename M::template Lane<V>>
BRAID_FORMULA V pulled_back(V x, V dy, [[maybe_unused]] L a, [[maybe_unused]] L b,
                            [[maybe_unused]] L c) {
  if constexpr (op == ActivationOp::gelu) {
    constexpr L kOneOverRootTwoPi = L(0.398942280401432677940);
    return dy * (M::erfc(x * L(-0.707106781186547524401)) * L(0.5) +
                 x * M::exp(x * x * L(-0.5)) * kOneOverRootTwoPi);
  } else if constexpr (op == ActivationOp::gelu_tanh) {
    const V s = M::sigmoid(twice_u<M>(x));
    return dy * (s + x * s * (L(1) - s) * (x * x * L(3 * 0.044715) + L(1)) *
                         L(2 * 0.797884560802865355880));
  } else if constexpr (op == ActivationOp::silu) {
    const V s = M::sigmoid(x);
    return dy * s * (x * (L(1) - s) + L(1));
  } else if constexpr (op == ActivationOp::softplus) return x * a > b ? dy : dy * M::sigmoid(x * a);
  else if constexpr (op == ActivationOp::elu)
    return x <= L(0) ? dy * M::exp(x * c) * (a * c) : dy * b;
  else if constexpr (op == ActivationOp::leaky_relu) return x > V{} ? dy : dy * a;
  else if constexpr (op == ActivationOp::hardtanh) return ((x <= a) | (x >= b)) ? V{} : dy;
  else if constexpr (op == ActivationOp::clamp) return is_inside<M>(x, a, b) ? dy : V{};
  else if constexpr (op == ActivationOp::hardsigmoid)
    return ((x > L(-3)) & (x < L(3))) ? dy / L(6) : V{};
  else if constexpr (op == ActivationOp::hardswish)
    return x <= L(-3) ? V{} : (x < L(3) ? dy * (x / L(3) + L(0.5)) : dy);
  else if constexpr (op == ActivationOp::mish) return M::mish_pulled_back(x, dy);
  else if constexpr (op == ActivationOp::logsigmoid) return dy * M::sigmoid(-x);
  else if constexpr (op == ActivationOp::logit) {
    constexpr L nan = L(__builtin_nan(""));
    const V slope = ((x < L(0)) | (x > L(1))) ? M::template splat<V>(nan) : dy / (x * (L(1) - x));
    return ((x < a) | (x > b)) ? V{} : slope;
  } else {
    static_assert(op == ActivationOp::softsign);
    const V w = M::abs(x) + L(1);
    return dy / (w * w);
  }
}

}  // namespace braid
