#include <braid/core/internal/kernel_args/optim.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/optim_items.hpp"

// Optimizer steps: parameters, gradients and state are read and written once. The elements of all
// items are treated as one sequence, which is split into tiles, so that many small parameters run
// as one job. Each optimizer is one function of a vector of elements; the iteration is shared.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The state that a step reads and writes.
struct Uses {
  bool m = false, v = false, s = false;
};

/// Calls step(p, g, m, v, s) on vectors of all elements, and stores the results in p and in the
/// state that it uses.
template <class E, class Args, class F>
BRAID_INLINE void for_states(const Args& args, Stream& stream, Uses uses, F step) {
  using T = typename E::T;
  using V = typename E::V;
  const auto* const factor = static_cast<const Lane<V>*>(args.grad_factor);
  const V by = splat<V>(factor ? *factor : Lane<V>(1));
  for_items(args.items, args.count, stream,
            [&](const OptimItem& item, std::int64_t begin, std::int64_t end) {
              T* const p = static_cast<T*>(item.p);
              const T* const g = static_cast<const T*>(item.g);
              T* const m = static_cast<T*>(item.m);
              T* const v = static_cast<T*>(item.v);
              T* const s = static_cast<T*>(item.s);
              const auto at = [&](std::int64_t i, int k) {
                V value = load_lanes<E>(p + i, k), mean = V{}, square = V{}, third = V{};
                if (uses.m) mean = load_lanes<E>(m + i, k);
                if (uses.v) square = load_lanes<E>(v + i, k);
                if (uses.s) third = load_lanes<E>(s + i, k);
                V gradient = load_lanes<E>(g + i, k);
                if (factor) gradient = multiply_rounded<E>(gradient, by);
                step(value, gradient, mean, square, third);
                store_lanes<E>(p + i, value, k);
                if (uses.m) store_lanes<E>(m + i, mean, k);
                if (uses.v) store_lanes<E>(v + i, square, k);
                if (uses.s) store_lanes<E>(s + i, third, k);
              };
              for (; begin + E::kLanes <= end; begin += E::kLanes) at(begin, E::kLanes);
              if (begin < end) at(begin, static_cast<int>(end - begin));
            });
}

/// A vector with `value` in every lane.
template <class V> BRAID_INLINE V all(double value) {
  return splat<V>(static_cast<Lane<V>>(value));
}

template <class E> void sgd_of(const SgdArgs& args, Stream& stream) {
  using V = typename E::V;
  const V lr = all<V>(args.lr), momentum = all<V>(args.momentum), decay = all<V>(args.weight_decay);
  const V fresh = all<V>(1.0 - args.dampening), sign = all<V>(args.maximize ? -1.0 : 1.0);
  const bool with_momentum = args.momentum != 0.0, with_decay = args.weight_decay != 0.0;
  for_states<E>(args, stream, {.m = with_momentum}, [&](V& p, V g, V& m, V&, V&) {
    V step = g * sign;
    if (with_decay) step = step + decay * p;
    if (with_momentum) {
      m = args.first ? step : momentum * m + fresh * step;
      step = args.nesterov ? step + momentum * m : m;
    }
    p = p - lr * step;
  });
}

BRAID_INLINE double power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

template <class E> void adam_of(const AdamArgs& args, Stream& stream) {
  using V = typename E::V;
  const double bias1 = 1.0 - power(args.beta1, args.step),
               bias2 = 1.0 - power(args.beta2, args.step);
  const V keep = all<V>(args.coupled ? 1.0 : 1.0 - args.lr * args.weight_decay),
          decay = all<V>(args.coupled ? args.weight_decay : 0.0);
  const V beta1 = all<V>(args.beta1), fresh1 = all<V>(1.0 - args.beta1), beta2 = all<V>(args.beta2),
          fresh2 = all<V>(1.0 - args.beta2);
  const V step_size = all<V>(args.lr / bias1), root_bias2 = all<V>(sqrt(splat<VD>(bias2))[0]),
          eps = all<V>(args.eps);
  const V sign = all<V>(args.maximize ? -1.0 : 1.0);
  const bool with_decay = args.coupled && args.weight_decay != 0.0;
  for_states<E>(args, stream, {true, true, args.amsgrad}, [&](V& p, V g, V& m, V& v, V& s) {
    V gradient = g * sign;
    if (with_decay) gradient = gradient + decay * p;
    m = beta1 * m + fresh1 * gradient;
    v = beta2 * v + fresh2 * gradient * gradient;
    V square = v;
    if (args.amsgrad) square = s = ((v > s) | (v != v)) ? v : s;  // a NaN propagates
    p = p * keep - step_size * m / (sqrt(square) / root_bias2 + eps);
  });
}

template <class E> void rmsprop_of(const RmspropArgs& args, Stream& stream) {
  using V = typename E::V;
  const V lr = all<V>(args.lr), alpha = all<V>(args.alpha), fresh = all<V>(1.0 - args.alpha),
          eps = all<V>(args.eps);
  const V decay = all<V>(args.weight_decay), momentum = all<V>(args.momentum),
          sign = all<V>(args.maximize ? -1.0 : 1.0);
  const bool with_momentum = args.momentum != 0.0, with_decay = args.weight_decay != 0.0;
  for_states<E>(args, stream, {with_momentum, true, args.centered},
                [&](V& p, V g, V& m, V& v, V& s) {
                  V gradient = g * sign;
                  if (with_decay) gradient = gradient + decay * p;
                  v = alpha * v + fresh * gradient * gradient;
                  V variance = v;
                  if (args.centered) {
                    s = alpha * s + fresh * gradient;
                    variance = v - s * s;
                  }
                  V step = gradient / (sqrt(variance) + eps);
                  if (with_momentum) step = m = momentum * m + step;
                  p = p - lr * step;
                });
}

template <class E> void adagrad_of(const AdagradArgs& args, Stream& stream) {
  using V = typename E::V;
  const V lr = all<V>(args.lr), eps = all<V>(args.eps), decay = all<V>(args.weight_decay),
          sign = all<V>(args.maximize ? -1.0 : 1.0);
  const bool with_decay = args.weight_decay != 0.0;
  for_states<E>(args, stream, {.v = true}, [&](V& p, V g, V&, V& v, V&) {
    V gradient = g * sign;
    if (with_decay) gradient = gradient + decay * p;
    v = v + gradient * gradient;
    p = p - lr * gradient / (sqrt(v) + eps);
  });
}

template <class E> void lion_of(const LionArgs& args, Stream& stream) {
  using V = typename E::V;
  const V lr = all<V>(args.lr), keep = all<V>(1.0 - args.lr * args.weight_decay),
          sign = all<V>(args.maximize ? -1.0 : 1.0), zero = V{};
  const V beta1 = all<V>(args.beta1), fresh1 = all<V>(1.0 - args.beta1), beta2 = all<V>(args.beta2),
          fresh2 = all<V>(1.0 - args.beta2);
  for_states<E>(args, stream, {.m = true}, [&](V& p, V g, V& m, V&, V&) {
    const V gradient = g * sign, way = beta1 * m + fresh1 * gradient;
    m = beta2 * m + fresh2 * gradient;
    const V step = way > zero ? lr : way < zero ? -lr : way;  // 0 stays 0, NaN stays NaN
    p = p * keep - step;
  });
}

}  // namespace

void sgd(const SgdArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("sgd", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    sgd_of<E>(args, stream);
    return true;
  });
}

void adam(const AdamArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("adam", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    adam_of<E>(args, stream);
    return true;
  });
}

void rmsprop(const RmspropArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("rmsprop", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    rmsprop_of<E>(args, stream);
    return true;
  });
}

void adagrad(const AdagradArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("adagrad", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    adagrad_of<E>(args, stream);
    return true;
  });
}

void lion(const LionArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("lion", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    lion_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
