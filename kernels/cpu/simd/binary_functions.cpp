#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/simd/c_math.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/table_parts.hpp"
#include "cpu/simd/through_float.hpp"

// out = f(a, b) for the less common functions: pow, atan2, fmod, remainder and floor division.
namespace braid::cpu::BRAID_ISA {
namespace {

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
    case BinaryOp::atan2: return ::atan2(a, b);
    case BinaryOp::fmod: return ::fmod(a, b);
    case BinaryOp::remainder: return remainder_of(a, b);
    default: return floor_of_quotient(a, b);
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
void atan2_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  map_two<F32, F32>(out, in, n, [](VF a, VF b) {
    return in_double(a, b, [](VD x, VD y) { return wide::atan2(x, y); });
  });
}

}  // namespace

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
    const MapKernel of_float = args.op == BinaryOp::pow     ? &pow_kernel
                               : args.op == BinaryOp::atan2 ? &atan2_kernel
                                                            : &scalar_kernel<float>;
    return run_floating(map, args.dtype, of_float, &scalar_kernel<double>, stream);
  }
  map.kernel = bytes == 1   ? &scalar_kernel<std::uint8_t>
               : bytes == 4 ? &scalar_kernel<std::int32_t>
                            : &scalar_kernel<std::int64_t>;
  run_map(map, stream);
}

}  // namespace braid::cpu::BRAID_ISA
