#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/c_math.hpp"
#include "cpu/simd/map.hpp"
#include "cpu/simd/table_parts.hpp"
#include "cpu/simd/trig.hpp"

// out = f(x), elementwise. float functions are the polynomials of math.hpp and trig.hpp; float64
// uses sin, cos, tanh and pow of the C library.
namespace braid::cpu::BRAID_ISA {
namespace {

/// -x of integers, wrapping around.
template <class V> BRAID_INLINE V negated(V x) {
  using U = Vec<std::make_unsigned_t<Lane<V>>, sizeof(V) / sizeof(Lane<V>)>;
  return (V)(U{} - (U)x);
}

template <class V> BRAID_INLINE V absolute(V x) {
  using L = Lane<V>;
  if constexpr (std::is_same_v<L, float>) return (V)((VI)x & INT32_MAX);
  else if constexpr (std::is_same_v<L, double>) return (V)((VL)x & INT64_MAX);
  else if constexpr (std::is_signed_v<L>) return x < V{} ? negated(x) : x;
  else return x;
}

template <class E, UnaryOp op, class V> BRAID_INLINE V apply(V x) {
  constexpr bool wide = std::is_same_v<V, VD>;
  if constexpr (op == UnaryOp::abs) return absolute(x);
  // a NaN fails the comparison and stays
  else if constexpr (op == UnaryOp::relu) return x <= V{} ? V{} : x;
  else if constexpr (!kFloating<E>) {
    using L = Lane<V>;
    using U = Vec<std::make_unsigned_t<L>, sizeof(V) / sizeof(L)>;
    if constexpr (op == UnaryOp::neg) return negated(x);
    else if constexpr (op == UnaryOp::square) return (V)((U)x * (U)x);
    else return x > V{} ? splat<V>(L{1}) : (x < V{} ? negated(splat<V>(L{1})) : V{});
  } else if constexpr (op == UnaryOp::neg) return -x;
  else if constexpr (op == UnaryOp::square) return x * x;
  else if constexpr (op == UnaryOp::sign) {
    using L = Lane<V>;
    return x > V{} ? splat<V>(L{1}) : (x < V{} ? splat<V>(L{-1}) : x);  // ±0 and NaN stay
  } else if constexpr (op == UnaryOp::sqrt) return sqrt(x);
  else if constexpr (op == UnaryOp::rsqrt) return Lane<V>{1} / sqrt(x);
  else if constexpr (op == UnaryOp::reciprocal) return Lane<V>{1} / x;
  else if constexpr (op == UnaryOp::exp) return exp(x);
  else if constexpr (op == UnaryOp::log) return log(x);
  else if constexpr (op == UnaryOp::sigmoid) return sigmoid(x);
  else if constexpr (op == UnaryOp::tanh && wide)
    return each_lane(x, [](double v) { return ::tanh(v); });
  else if constexpr (op == UnaryOp::sin && wide)
    return each_lane(x, [](double v) { return ::sin(v); });
  else if constexpr (op == UnaryOp::cos && wide)
    return each_lane(x, [](double v) { return ::cos(v); });
  else if constexpr (op == UnaryOp::tanh) return tanh(x);
  else if constexpr (op == UnaryOp::sin) return sin(x);
  else return cos(x);
}

template <class E, UnaryOp op>
void unary_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using V = typename E::V;
  map_one<E, E>(out, in, n, [](V x) { return apply<E, op>(x); });
}

/// x^alpha for any alpha: exp(alpha log|x|) in double. The error after rounding to float is under 1
/// ULP.
BRAID_INLINE VF pow_through_double(VF x, double alpha, bool whole, bool odd) {
  const VF magnitude = absolute(x);
  const DoublePair wide = to_double(magnitude);
  const VD exponent = splat<VD>(alpha);
  VF y = to_float(exp(log(wide.low) * exponent), exp(log(wide.high) * exponent));
  y = magnitude == 1.0f ? splat<VF>(1.0f) : y;  // log 1 * inf would be NaN
  const auto negative = (VI)x < 0;              // the sign bit: -0 too
  if (odd) y = (VF)((VI)y | (negative & INT32_MIN));
  if (!whole) y = x < 0.0f && magnitude != __builtin_inff() ? splat<VF>(__builtin_nanf("")) : y;
  return y;
}

struct Power {
  double alpha;
  bool whole, odd;
};

template <class E>
void pow_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using V = typename E::V;
  const Power power = *static_cast<const Power*>(parameters);
  map_one<E, E>(out, in, n, [&](V x) {
    if constexpr (std::is_same_v<V, VD>)
      return each_lane(x, [&](double v) { return ::pow(v, power.alpha); });
    else return pow_through_double(x, power.alpha, power.whole, power.odd);
  });
}
template <class E> void ones_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using V = typename E::V;
  map_one<E, E>(out, in, n, [](V) { return splat<V>(Lane<V>{1}); });
}
template <class E> void cube_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using V = typename E::V;
  map_one<E, E>(out, in, n, [](V x) { return x * x * x; });
}
template <class E> void same_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using V = typename E::V;
  map_one<E, E>(out, in, n, [](V x) { return x; });
}

/// Common exponents have kernels without logarithms.
template <class E> BRAID_INLINE MapKernel find_pow_kernel(double alpha) {
  if (alpha == 0.0) return &ones_kernel<E>;
  if (alpha == 1.0) return &same_kernel<E>;
  if (alpha == 2.0) return &unary_kernel<E, UnaryOp::square>;
  if (alpha == 3.0) return &cube_kernel<E>;
  if (alpha == -1.0) return &unary_kernel<E, UnaryOp::reciprocal>;
  return &pow_kernel<E>;
}

template <class E, UnaryOp op> constexpr MapKernel kernel_for() {
  constexpr bool whole = op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::relu ||
                         op == UnaryOp::square || op == UnaryOp::sign;
  if constexpr (E::kDType == DType::bool_ || (!kFloating<E> && !whole)) return nullptr;
  else return &unary_kernel<E, op>;
}

template <class E> BRAID_INLINE MapKernel find_kernel(UnaryOp op, double alpha) {
  switch (op) {
    case UnaryOp::neg: return kernel_for<E, UnaryOp::neg>();
    case UnaryOp::abs: return kernel_for<E, UnaryOp::abs>();
    case UnaryOp::relu: return kernel_for<E, UnaryOp::relu>();
    case UnaryOp::exp: return kernel_for<E, UnaryOp::exp>();
    case UnaryOp::log: return kernel_for<E, UnaryOp::log>();
    case UnaryOp::sqrt: return kernel_for<E, UnaryOp::sqrt>();
    case UnaryOp::rsqrt: return kernel_for<E, UnaryOp::rsqrt>();
    case UnaryOp::tanh: return kernel_for<E, UnaryOp::tanh>();
    case UnaryOp::sigmoid: return kernel_for<E, UnaryOp::sigmoid>();
    case UnaryOp::sin: return kernel_for<E, UnaryOp::sin>();
    case UnaryOp::cos: return kernel_for<E, UnaryOp::cos>();
    case UnaryOp::reciprocal: return kernel_for<E, UnaryOp::reciprocal>();
    case UnaryOp::square: return kernel_for<E, UnaryOp::square>();
    case UnaryOp::sign: return kernel_for<E, UnaryOp::sign>();
    case UnaryOp::pow_scalar:
      if constexpr (kFloating<E>) return find_pow_kernel<E>(alpha);
      break;
    default: break;  // the functions in unary_functions.cpp
  }
  return nullptr;
}

BRAID_INLINE Power power_of(double alpha) {
  // Doubles from 2^53 on are even. A smaller one is an integer if its conversion to int64 is exact.
  const bool large = !(alpha < 0x1p53 && alpha > -0x1p53);
  const std::int64_t n = large ? 0 : static_cast<std::int64_t>(alpha);
  const bool whole = large ? alpha == alpha : static_cast<double>(n) == alpha;
  return {alpha, whole, whole && (n & 1) != 0};
}

}  // namespace

void unary(const UnaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (is_function(args.op)) return unary_function(args, stream);
  const MapKernel kernel =
      with_element(args.dtype, [&]<class E>() { return find_kernel<E>(args.op, args.alpha); });
  if (kernel == nullptr) {
    const bool whole = args.op == UnaryOp::neg || args.op == UnaryOp::abs ||
                       args.op == UnaryOp::relu || args.op == UnaryOp::square ||
                       args.op == UnaryOp::sign;
    fail_dtype("unary", whole ? "numbers" : "a floating-point dtype", args.dtype);
  }
  const Power power = power_of(args.alpha);
  const int bytes = element_bytes(args.dtype);
  run_map(Map{.kernel = kernel,
              .parameters = &power,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = bytes,
              .inputs = 1,
              .in = {args.x},
              .in_bytes = {bytes},
              .scalar = {}},
          stream);
}

}  // namespace braid::cpu::BRAID_ISA
