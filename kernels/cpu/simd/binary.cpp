#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/c_math.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/map.hpp"
#include "cpu/simd/through_float.hpp"

// out = a op b, elementwise. Integers wrap around; for bool, add is "or" and mul is "and". The less
// common functions (is_function) are pow, atan2, fmod, remainder, floor division and those of bits.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class V> using Unsigned = Vec<std::make_unsigned_t<Lane<V>>, sizeof(V) / sizeof(Lane<V>)>;

template <class E, BinaryOp op> constexpr bool supported() {
  if constexpr (op == BinaryOp::tanh_backward || op == BinaryOp::sigmoid_backward)
    return kFloating<E>;
  else if constexpr (E::kDType != DType::bool_) return true;
  else return op != BinaryOp::sub && op != BinaryOp::div && op != BinaryOp::relu_backward;
}

/// One vector of results, or a mask for comparisons.
template <class E, BinaryOp op, class V> BRAID_INLINE auto apply(V a, V b) {
  constexpr bool boolean = E::kDType == DType::bool_;
  if constexpr (op == BinaryOp::eq) return a == b;
  else if constexpr (op == BinaryOp::ne) return a != b;
  else if constexpr (op == BinaryOp::lt) return a < b;
  else if constexpr (op == BinaryOp::le) return a <= b;
  else if constexpr (op == BinaryOp::gt) return a > b;
  else if constexpr (op == BinaryOp::ge) return a >= b;
  // a NaN in b lets the gradient pass
  else if constexpr (op == BinaryOp::relu_backward) return b <= V{} ? V{} : a;
  else if constexpr (boolean && (op == BinaryOp::add || op == BinaryOp::maximum)) return a | b;
  else if constexpr (boolean) return a & b;  // mul, minimum
  else if constexpr (kFloating<E>) {
    if constexpr (op == BinaryOp::add) return a + b;
    else if constexpr (op == BinaryOp::sub) return a - b;
    else if constexpr (op == BinaryOp::mul) return a * b;
    else if constexpr (op == BinaryOp::div) return a / b;
    else if constexpr (op == BinaryOp::tanh_backward) return a * (Lane<V>{1} - b * b);
    else if constexpr (op == BinaryOp::sigmoid_backward) return a * b * (Lane<V>{1} - b);
    // if b is a NaN, a > b is false and b is returned
    else if constexpr (op == BinaryOp::maximum) return a != a ? a : (a > b ? a : b);
    else return a != a ? a : (a < b ? a : b);
  } else {
    using U = Unsigned<V>;
    if constexpr (op == BinaryOp::add) return (V)((U)a + (U)b);
    else if constexpr (op == BinaryOp::sub) return (V)((U)a - (U)b);
    else if constexpr (op == BinaryOp::mul) return (V)((U)a * (U)b);
    else if constexpr (op == BinaryOp::maximum) return a > b ? a : b;
    else return a < b ? a : b;
  }
}

/// Stores a mask of lanes of E as bool.
template <class E> struct MaskOut {
  using T = std::uint8_t;
  using M = decltype(typename E::V{} == typename E::V{});
  static BRAID_INLINE void store(T* p, M m) { BRAID_ISA::store(p, mask_to_bytes(m)); }
  static BRAID_INLINE void store_first(T* p, M m, int k) {
    BRAID_ISA::store_first(p, mask_to_bytes(m), k);
  }
};

template <class E, BinaryOp op>
void binary_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using Out = std::conditional_t<(op >= BinaryOp::eq), MaskOut<E>, E>;
  using V = typename E::V;
  map_two<Out, E>(out, in, n, [](V a, V b) { return apply<E, op>(a, b); });
}

/// a ± alpha b, with two roundings.
template <class E, BinaryOp op>
void scaled_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using V = typename E::V;
  const double alpha = *static_cast<const double*>(parameters);
  V factor;
  if constexpr (kFloating<E>) factor = splat<V>(static_cast<Lane<V>>(alpha));
  else factor = splat<V>(E::from_double(alpha));
  map_two<E, E>(out, in, n,
                [factor](V a, V b) { return apply<E, op>(a, apply<E, BinaryOp::mul>(factor, b)); });
}

/// A number beside 16-bit elements stays a float, because their dtype may not hold it. The other
/// operand has the elements.
struct Number {
  float value, alpha;
  bool first;
};
template <class E, BinaryOp op>
void number_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  const Number number = *static_cast<const Number*>(parameters);
  const VF value = splat<VF>(number.value), alpha = splat<VF>(number.alpha);
  const auto result = [alpha](VF a, VF b) {
    constexpr bool scaled = op == BinaryOp::add || op == BinaryOp::sub;
    return apply<E, op>(a, scaled ? alpha * b : b);
  };
  const int elements = number.first ? 1 : 0;
  Inputs one;
  one.p[0] = in.p[elements];
  one.step[0] = in.step[elements];
  if (number.first) map_one<E, E>(out, one, n, [&](VF x) { return result(value, x); });
  else map_one<E, E>(out, one, n, [&](VF x) { return result(x, value); });
}
template <class E> MapKernel number_kernel_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return &number_kernel<E, BinaryOp::add>;
    case BinaryOp::sub: return &number_kernel<E, BinaryOp::sub>;
    case BinaryOp::mul: return &number_kernel<E, BinaryOp::mul>;
    default: return &number_kernel<E, BinaryOp::div>;
  }
}

/// Truncating integer division. The divisors were checked before. The most negative number divided
/// by -1 wraps to itself.
template <class E>
void integer_division_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  using T = typename E::T;
  T* to = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in.p[0]);
  const T* b = static_cast<const T*>(in.p[1]);
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = a[in.step[0] == 0 ? 0 : i], y = b[in.step[1] == 0 ? 0 : i];
    if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      to[i] = y == -1 ? static_cast<T>(U{0} - static_cast<U>(x)) : static_cast<T>(x / y);
    } else {
      to[i] = static_cast<T>(x / y);
    }
  }
}

/// Throws, before anything is written, if a divisor is 0.
template <class E> void check_divisors(const BinaryArgs& args, const void* b, bool scalar) {
  using T = typename E::T;
  const T* p = static_cast<const T*>(b);
  bool zero = false;
  if (scalar || args.loop.rank == 0 || is_repeated(args.loop, 2)) {
    zero = *p == 0;
  } else {
    for_runs(args.loop, 2, Position{}, args.loop.n,
             [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
               for (std::int64_t i = 0; i < run; ++i) zero |= p[offset + i * stride] == 0;
             });
  }
  if (zero) fail_division_by_zero(args.op);
}

template <class E, BinaryOp op> constexpr MapKernel kernel_for() {
  if constexpr (!supported<E, op>()) return nullptr;
  else if constexpr (op == BinaryOp::div && !kFloating<E>) return &integer_division_kernel<E>;
  else return &binary_kernel<E, op>;
}

template <class E> BRAID_INLINE MapKernel find_kernel(BinaryOp op, bool scaled) {
  switch (op) {
    case BinaryOp::add:
      if constexpr (E::kDType != DType::bool_) {
        if (scaled) return &scaled_kernel<E, BinaryOp::add>;
      }
      return kernel_for<E, BinaryOp::add>();
    case BinaryOp::sub:
      if constexpr (E::kDType != DType::bool_) {
        if (scaled) return &scaled_kernel<E, BinaryOp::sub>;
      }
      return kernel_for<E, BinaryOp::sub>();
    case BinaryOp::mul: return kernel_for<E, BinaryOp::mul>();
    case BinaryOp::div: return kernel_for<E, BinaryOp::div>();
    case BinaryOp::maximum: return kernel_for<E, BinaryOp::maximum>();
    case BinaryOp::minimum: return kernel_for<E, BinaryOp::minimum>();
    case BinaryOp::relu_backward: return kernel_for<E, BinaryOp::relu_backward>();
    case BinaryOp::tanh_backward: return kernel_for<E, BinaryOp::tanh_backward>();
    case BinaryOp::sigmoid_backward: return kernel_for<E, BinaryOp::sigmoid_backward>();
    case BinaryOp::eq: return kernel_for<E, BinaryOp::eq>();
    case BinaryOp::ne: return kernel_for<E, BinaryOp::ne>();
    case BinaryOp::lt: return kernel_for<E, BinaryOp::lt>();
    case BinaryOp::le: return kernel_for<E, BinaryOp::le>();
    case BinaryOp::gt: return kernel_for<E, BinaryOp::gt>();
    case BinaryOp::ge: return kernel_for<E, BinaryOp::ge>();
    default: break;  // the less common functions, see below
  }
  return nullptr;
}

// ---- the less common functions

/// a modulo b with the sign of b, as in Python.
BRAID_INLINE double remainder_of(double a, double b) {
  const double r = ::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/// ⌊a / b⌋, computed from the remainder of fmod, so that rounding a / b cannot give the next
/// integer. For b = 0, returns a / b: an infinity or NaN.
BRAID_INLINE double floor_of_quotient(double a, double b) {
  if (b == 0) return a / b;
  const double r = ::fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return __builtin_copysign(0.0, a / b);
  const double f = ::floor(q);
  return q - f > 0.5 ? f + 1 : f;
}

BRAID_INLINE double function_of(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::pow: return ::pow(a, b);
#define BRAID_BINARY_FLOATING(name, c) \
  case BinaryOp::name: return ::c(a, b);
#include <braid/core/internal/binary.def>
    case BinaryOp::fmod: return ::fmod(a, b);
    case BinaryOp::remainder: return remainder_of(a, b);
    default: return floor_of_quotient(a, b);
  }
}

template <class T> BRAID_INLINE T of_bits(BinaryOp op, T a, T b) {
  constexpr int kBits = sizeof(T) * 8;
  const bool inside = static_cast<std::make_unsigned_t<T>>(b) < kBits;
  switch (op) {
    case BinaryOp::bitwise_and: return static_cast<T>(a & b);
    case BinaryOp::bitwise_or: return static_cast<T>(a | b);
    case BinaryOp::bitwise_xor: return static_cast<T>(a ^ b);
    case BinaryOp::bitwise_left_shift:
      return inside ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b) : T{0};
    default: return inside ? static_cast<T>(a >> b) : std::is_signed_v<T> && a < 0 ? T(-1) : T{0};
  }
}

/// Integers wrap around. For the divisions, b is not 0. A negative exponent gives 0, except for
/// bases 1 and -1.
template <class T> BRAID_INLINE T function_of(BinaryOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (op == BinaryOp::pow) {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? T{1} : a == -1 ? ((b & 1) != 0 ? T{-1} : T{1}) : T{0};
    }
    U result = 1, power = static_cast<U>(a);
    for (U e = static_cast<U>(b); e != 0; e = static_cast<U>(e >> 1)) {
      if ((e & 1) != 0) result = static_cast<U>(result * power);
      power = static_cast<U>(power * power);
    }
    return static_cast<T>(result);
  }
  if (is_integer_function(op)) return of_bits(op, a, b);
  if constexpr (std::is_signed_v<T>) {
    // the most negative number wraps to itself
    if (b == -1)
      return op == BinaryOp::floor_divide ? static_cast<T>(U{0} - static_cast<U>(a)) : T{0};
    const T r = static_cast<T>(a % b);
    const bool below = r != 0 && (r < 0) != (b < 0);
    if (op == BinaryOp::fmod) return r;
    if (op == BinaryOp::remainder) return below ? static_cast<T>(r + b) : r;
    return static_cast<T>(a / b - (below ? 1 : 0));
  } else {
    return static_cast<T>(op == BinaryOp::floor_divide ? a / b : a % b);
  }
}

/// Elementwise, in the type itself; float is computed in double, where the remainder of two floats
/// is exact.
template <class T>
void scalar_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const BinaryOp op = *static_cast<const BinaryOp*>(parameters);
  T* to = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in.p[0]);
  const T* b = static_cast<const T*>(in.p[1]);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(function_of(op, static_cast<Wide>(a[in.step[0] == 0 ? 0 : i]),
                                       static_cast<Wide>(b[in.step[1] == 0 ? 0 : i])));
}
void pow_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  map_two<F32, F32>(out, in, n, [](VF a, VF b) {
    return in_double(a, b, [](VD x, VD y) { return wide::pow(x, y); });
  });
}
#define BRAID_BINARY_FLOATING(name, c)                                           \
  void name##_kernel(void* out, const Inputs& in, std::int64_t n, const void*) { \
    map_two<F32, F32>(out, in, n, [](VF a, VF b) {                               \
      return in_double(a, b, [](VD x, VD y) { return wide::name(x, y); });       \
    });                                                                          \
  }
#include <braid/core/internal/binary.def>

/// The kernel for float.
BRAID_INLINE MapKernel float_kernel_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::pow: return &pow_kernel;
#define BRAID_BINARY_FLOATING(name, c) \
  case BinaryOp::name: return &name##_kernel;
#include <braid/core/internal/binary.def>
    default: return &scalar_kernel<float>;
  }
}

/// `scalar` is the missing operand as an element of the dtype.
void binary_function(const BinaryArgs& args, const void* scalar, Stream& stream) {
  const int bytes = element_bytes(args.dtype);
  Map map{.kernel = nullptr,
          .parameters = &args.op,
          .loop = args.loop,
          .out = args.out,
          .out_bytes = bytes,
          .inputs = 2,
          .in = {args.a == nullptr ? scalar : args.a, args.b == nullptr ? scalar : args.b},
          .in_bytes = {bytes, bytes},
          .scalar = {args.a == nullptr, args.b == nullptr}};
  if (args.dtype >= DType::float16) {
    return run_floating(map, args.dtype, float_kernel_of(args.op), &scalar_kernel<double>, stream);
  }
  map.kernel = bytes == 1   ? &scalar_kernel<std::uint8_t>
               : bytes == 4 ? &scalar_kernel<std::int32_t>
                            : &scalar_kernel<std::int64_t>;
  run_map(map, stream);
}

}  // namespace

void binary(const BinaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  const bool scaled = args.alpha != 1.0 && (args.op == BinaryOp::add || args.op == BinaryOp::sub);
  const bool function = is_function(args.op);
  MapKernel kernel = function ? nullptr : with_element(args.dtype, [&]<class E>() {
    return find_kernel<E>(args.op, scaled);
  });
  if (kernel == nullptr && !function) {
    const bool whole = args.op != BinaryOp::tanh_backward && args.op != BinaryOp::sigmoid_backward;
    fail_dtype("binary",
               whole ? "an operation that bool has (not sub, div, relu_backward)"
                     : "a floating-point dtype",
               args.dtype);
  }
  if (is_floating_function(args.op) && args.dtype < DType::float16)
    fail_dtype("binary", "a floating-point dtype", args.dtype);
  if (is_integer_function(args.op) && args.dtype >= DType::float16)
    fail_dtype("binary", "an integer dtype", args.dtype);
  if (function && args.dtype == DType::bool_) fail_dtype("binary", "numbers", args.dtype);

  // A missing operand is `scalar`, here rounded to the dtype.
  std::uint64_t scalar = 0;
  if (args.a == nullptr || args.b == nullptr) {
    with_element(args.dtype, [&]<class E>() {
      store(&scalar, E::from_double(args.scalar));
      return true;
    });
  }
  const void* const a = args.a == nullptr ? &scalar : args.a;
  const void* const b = args.b == nullptr ? &scalar : args.b;
  if (is_division(args.op) && args.dtype < DType::float16) {
    with_element(args.dtype, [&]<class E>() {
      if constexpr (!kFloating<E>) check_divisors<E>(args, b, args.b == nullptr);
      return true;
    });
  }
  if (function) return binary_function(args, &scalar, stream);
  const int bytes = element_bytes(args.dtype);
  const Number number{.value = static_cast<float>(args.scalar),
                      .alpha = static_cast<float>(args.alpha),
                      .first = args.a == nullptr};
  const void* parameters = &args.alpha;
  if (bytes == 2 && (args.a == nullptr || args.b == nullptr) && keeps_scalar(args.op)) {
    kernel = args.dtype == DType::float16 ? number_kernel_of<F16>(args.op)
                                          : number_kernel_of<BF16>(args.op);
    parameters = &number;
  }
  run_map(Map{.kernel = kernel,
              .parameters = parameters,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = is_comparison(args.op) ? 1 : bytes,
              .inputs = 2,
              .in = {a, b},
              .in_bytes = {bytes, bytes},
              .scalar = {args.a == nullptr, args.b == nullptr}},
          stream);
}

}  // namespace braid::cpu::BRAID_ISA
