#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/map.hpp"
#include "cpu/simd/table_parts.hpp"

// out = a op b, elementwise. Integers wrap around; for bool, add is "or" and mul is "and".
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
    default: break;  // the functions, see binary_functions.cpp
  }
  return nullptr;
}

}  // namespace

void binary(const BinaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  const bool scaled = args.alpha != 1.0 && (args.op == BinaryOp::add || args.op == BinaryOp::sub);
  const bool function = is_function(args.op);
  const MapKernel kernel = function ? nullptr : with_element(args.dtype, [&]<class E>() {
    return find_kernel<E>(args.op, scaled);
  });
  if (kernel == nullptr && !function) {
    const bool whole = args.op != BinaryOp::tanh_backward && args.op != BinaryOp::sigmoid_backward;
    fail_dtype("binary",
               whole ? "an operation that bool has (not sub, div, relu_backward)"
                     : "a floating-point dtype",
               args.dtype);
  }
  if (function && args.op == BinaryOp::atan2 && args.dtype < DType::float16)
    fail_dtype("binary", "a floating-point dtype", args.dtype);
  if (function && args.dtype == DType::bool_) fail_dtype("binary", "numbers", args.dtype);

  // A missing operand is `scalar`, rounded to the dtype.
  std::uint64_t scalar = 0;
  if (args.a == nullptr || args.b == nullptr) {
    with_element(args.dtype, [&]<class E>() {
      store(&scalar, E::from_double(args.scalar));
      return true;
    });
  }
  const void* const a = args.a == nullptr ? &scalar : args.a;
  const void* const b = args.b == nullptr ? &scalar : args.b;
  const bool divides = args.op == BinaryOp::div || (function && args.op != BinaryOp::pow);
  if (divides && args.dtype < DType::float16) {
    with_element(args.dtype, [&]<class E>() {
      if constexpr (!kFloating<E>) check_divisors<E>(args, b, args.b == nullptr);
      return true;
    });
  }
  if (function) return binary_function(args, &scalar, stream);
  const int bytes = element_bytes(args.dtype);
  run_map(Map{.kernel = kernel,
              .parameters = &args.alpha,
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
