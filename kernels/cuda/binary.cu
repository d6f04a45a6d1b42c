#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/report.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// out = a op b, elementwise. Integers wrap around; for bool, add is "or" and mul is "and". The less
// common functions (is_function) share one kernel per dtype, as in unary.cu. A remainder is always
// representable, so fmod is exact; the quotient is computed from it.
namespace braid::cuda {

/// a ± alpha b, with two roundings. alpha = 1 changes no bit; memory accesses hide its cost.
template <class E, bool subtract> struct AddScaled {
  using A = typename E::A;
  A alpha;
  BRAID_DEVICE A operator()(A a, A b) const {
    if constexpr (E::kDType == DType::bool_) {
      return static_cast<A>(a | b);
    } else if constexpr (E::kFloating) {
      const A scaled = multiply(alpha, b);
      return subtract ? a - scaled : a + scaled;
    } else {
      using U = std::make_unsigned_t<A>;
      const U scaled = static_cast<U>(static_cast<U>(alpha) * static_cast<U>(b));
      return static_cast<A>(subtract ? static_cast<U>(a) - scaled : static_cast<U>(a) + scaled);
    }
  }
};
template <class E> struct Multiply {
  using A = typename E::A;
  BRAID_DEVICE A operator()(A a, A b) const {
    if constexpr (E::kDType == DType::bool_) {
      return static_cast<A>(a & b);
    } else if constexpr (E::kFloating) {
      return a * b;
    } else {
      using U = std::make_unsigned_t<A>;
      return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
    }
  }
};
template <class E> struct Divide {
  using A = typename E::A;
  BRAID_DEVICE A operator()(A a, A b) const { return a / b; }
};
/// Truncating division. The most negative number divided by -1 wraps to itself. A divisor of 0 is
/// reported and gives 0.
template <class E> struct DivideIntegers {
  using A = typename E::A;
  static constexpr int kPackLimit = 2;
  FaultSite site;
  BRAID_DEVICE A operator()(A a, A b) const {
    if (b == A{0}) {
      report(site, DeviceFault::division, 0, 0, 0, 0);
      return A{0};
    }
    if constexpr (std::is_signed_v<A>) {
      if (b == A{-1})
        return static_cast<A>(std::make_unsigned_t<A>{0} - static_cast<std::make_unsigned_t<A>>(a));
    }
    return static_cast<A>(a / b);
  }
};
/// A NaN in either operand wins.
template <class E, bool smallest> struct Extreme {
  using A = typename E::A;
  BRAID_DEVICE A operator()(A a, A b) const {
    if constexpr (E::kFloating) {
      if (is_nan(a)) return a;
    }
    if constexpr (smallest) return a < b ? a : b;
    else return a > b ? a : b;
  }
};
template <class E> struct ReluBackward {
  using A = typename E::A;
  // a NaN lets the gradient pass
  BRAID_DEVICE A operator()(A a, A b) const { return b <= A{0} ? A{0} : a; }
};
/// The gradient of tanh, a (1 - b²), or of sigmoid, a b (1 - b), where b is the output.
template <class E> struct BackwardFromOutput {
  using A = typename E::A;
  bool of_sigmoid;
  BRAID_DEVICE A operator()(A a, A b) const {
    return of_sigmoid ? a * b * (A(1) - b) : a * (A(1) - b * b);
  }
};
/// All six comparisons: bits of `accepted` tell which of "less", "equal", "greater" and "unordered"
/// count as true.
template <class E> struct Compare {
  using A = typename E::A;
  unsigned accepted;
  BRAID_DEVICE std::uint8_t operator()(A a, A b) const {
    const unsigned is = a < b ? 1u : a == b ? 2u : a > b ? 4u : 8u;
    return (is & accepted) != 0u ? 1 : 0;
  }
};
constexpr unsigned accepted_by(BinaryOp op) {
  switch (op) {
    case BinaryOp::eq: return 2;
    case BinaryOp::ne: return 1 | 4 | 8;
    case BinaryOp::lt: return 1;
    case BinaryOp::le: return 1 | 2;
    case BinaryOp::gt: return 4;
    default: return 2 | 4;
  }
}

/// out = f of 16-bit elements and of a number, which stays a float: their dtype may not hold it.
template <class E, class F> struct MapNumber {
  using T = typename E::T;
  static constexpr int kOperands = 3, kPack = pack_size<T>();
  struct WithNumber {
    F f;
    float number;
    bool first;
    BRAID_DEVICE float operator()(float x) const {
      return f(first ? number : x, first ? x : number);
    }
  };
  T* out;
  const T* x;
  WithNumber f;
  [[nodiscard]] int head() const { return common_head<kPack>(out, x); }
  BRAID_DEVICE void element(const Offsets<3>& o) const {
    out[o.at[0]] = E::store(f(E::load(x[f.first ? o.at[2] : o.at[1]])));
  }
  BRAID_DEVICE void pack(std::int64_t i) const {
    store_pack(out + i, map_pack<E, E>(f, load_pack<kPack>(x + i)));
  }
};

/// Returns false, and queues nothing, for two tensors and for an op that rounds the number.
template <class E> bool with_number(const BinaryArgs& args, Stream& stream) {
  using T = typename E::T;
  const bool first = args.a == nullptr;
  if ((!first && args.b != nullptr) || !keeps_scalar(args.op)) return false;
  const auto launch = [&]<class F>(F f) {
    map("binary",
        MapNumber<E, F>{static_cast<T*>(args.out),
                        static_cast<const T*>(first ? args.b : args.a),
                        {f, static_cast<float>(args.scalar), first}},
        args.loop, stream);
    return true;
  };
  const auto alpha = static_cast<float>(args.alpha);
  if (args.op == BinaryOp::add) return launch(AddScaled<E, false>{alpha});
  if (args.op == BinaryOp::sub) return launch(AddScaled<E, true>{alpha});
  if (args.op == BinaryOp::mul) return launch(Multiply<E>{});
  return launch(Divide<E>{});
}

template <class E> void binary_of(const BinaryArgs& args, Stream& stream) {
  using T = typename E::T;
  using A = typename E::A;
  if constexpr (E::kFloating && sizeof(T) == 2) {
    if (with_number<E>(args, stream)) return;
  }
  const T scalar = E::from_double(args.scalar);
  const Operand<E> a{static_cast<const T*>(args.a), scalar},
      b{static_cast<const T*>(args.b), scalar};
  const auto launch = [&]<class Out, class F>(Out, F f) {
    map("binary", Map2<Out, E, F>{static_cast<typename Out::T*>(args.out), a, b, f}, args.loop,
        stream);
  };
  const A alpha = E::kFloating ? static_cast<A>(args.alpha)
                               : static_cast<A>(E::load(E::from_double(args.alpha)));
  if (is_comparison(args.op)) return launch(B8{}, Compare<E>{accepted_by(args.op)});
  if (args.op == BinaryOp::tanh_backward || args.op == BinaryOp::sigmoid_backward) {
    if constexpr (E::kFloating)
      return launch(E{}, BackwardFromOutput<E>{args.op == BinaryOp::sigmoid_backward});
    fail_dtype("binary", "a floating-point dtype", args.dtype);
  }
  if constexpr (E::kDType != DType::bool_) {
    if (args.op == BinaryOp::sub) return launch(E{}, AddScaled<E, true>{alpha});
    if (args.op == BinaryOp::relu_backward) return launch(E{}, ReluBackward<E>{});
    if (args.op == BinaryOp::div) {
      if constexpr (E::kFloating) return launch(E{}, Divide<E>{});
      else
        return launch(
            E{}, DivideIntegers<E>{fault_site(device_error_record(stream), "div", "divisors")});
    }
  }
  switch (args.op) {
    case BinaryOp::add: return launch(E{}, AddScaled<E, false>{alpha});
    case BinaryOp::mul: return launch(E{}, Multiply<E>{});
    case BinaryOp::maximum: return launch(E{}, Extreme<E, false>{});
    case BinaryOp::minimum: return launch(E{}, Extreme<E, true>{});
    default:
      fail_dtype("binary", "an operation that bool has (not sub, div, relu_backward)", args.dtype);
  }
}

// ---- the less common functions

#define BRAID_BINARY_FLOATING(name, c)                                    \
  BRAID_DEVICE float name##_of(float a, float b) { return ::c##f(a, b); } \
  BRAID_DEVICE double name##_of(double a, double b) { return ::c(a, b); }
#include <braid/core/internal/binary.def>
BRAID_DEVICE float copysign_of(float m, float s) { return ::copysignf(m, s); }
BRAID_DEVICE double copysign_of(double m, double s) { return ::copysign(m, s); }

template <class A> BRAID_DEVICE A floor_of_quotient(A a, A b, A r) {
  if (b == A(0)) return a / b;
  A q = (a - r) / b;
  if (r != A(0) && (r < A(0)) != (b < A(0))) q -= A(1);
  if (q == A(0)) return copysign_of(A(0), a / b);
  const A f = floor_of(q);
  return q - f > A(0.5) ? f + A(1) : f;
}

struct FloatingFunction {
  static constexpr int kAtOnce = 1;
  BinaryOp op;
  template <class A> BRAID_DEVICE A operator()(A a, A b) const {
    if (op == BinaryOp::pow) return pow_of(a, b);
#define BRAID_BINARY_FLOATING(name, c) \
  if (op == BinaryOp::name) return name##_of(a, b);
#include <braid/core/internal/binary.def>
    const A r = fmod_of(a, b);
    if (op == BinaryOp::fmod) return r;
    if (op == BinaryOp::remainder) return r != A(0) && (r < A(0)) != (b < A(0)) ? r + b : r;
    return floor_of_quotient(a, b, r);
  }
};

/// Integers wrap around. A divisor of 0 is reported and gives 0. A negative exponent gives 0,
/// except for bases 1 and -1.
template <class A> struct IntegerFunction {
  static constexpr int kAtOnce = 1;
  static constexpr int kPackLimit = sizeof(A) == 1 ? 8 : 16;  // longer packs leave the registers
  using U = std::make_unsigned_t<A>;
  BinaryOp op;
  FaultSite site;
  BRAID_DEVICE A power(A a, A b) const {
    if constexpr (std::is_signed_v<A>) {
      if (b < A{0}) return a == A{1} ? A{1} : a == A{-1} ? ((b & 1) != 0 ? A{-1} : A{1}) : A{0};
    }
    U result = 1, base = static_cast<U>(a);
    for (U e = static_cast<U>(b); e != 0; e = static_cast<U>(e >> 1)) {
      if ((e & 1) != 0) result = static_cast<U>(result * base);
      base = static_cast<U>(base * base);
    }
    return static_cast<A>(result);
  }
  BRAID_DEVICE A of_bits(A a, A b) const {
    constexpr int kBits = sizeof(A) * 8;
    const bool inside = static_cast<U>(b) < kBits;
    if (op == BinaryOp::bitwise_and) return static_cast<A>(a & b);
    if (op == BinaryOp::bitwise_or) return static_cast<A>(a | b);
    if (op == BinaryOp::bitwise_xor) return static_cast<A>(a ^ b);
    if (op == BinaryOp::bitwise_left_shift)
      return inside ? static_cast<A>(static_cast<U>(a) << b) : A{0};
    if (inside) return static_cast<A>(a >> b);
    return static_cast<A>(std::is_signed_v<A> && a < A{0} ? -1 : 0);
  }
  BRAID_DEVICE A operator()(A a, A b) const {
    if (op == BinaryOp::pow) return power(a, b);
    if (is_integer_function(op)) return of_bits(a, b);
    if (b == A{0}) {
      report(site, DeviceFault::division, 0, 0, 0, 0);
      return A{0};
    }
    if constexpr (std::is_signed_v<A>) {
      // the most negative number wraps to itself
      if (b == A{-1})
        return op == BinaryOp::floor_divide ? static_cast<A>(U{0} - static_cast<U>(a)) : A{0};
      const A r = static_cast<A>(a % b);
      const bool below = r != A{0} && (r < A{0}) != (b < A{0});
      if (op == BinaryOp::fmod) return r;
      if (op == BinaryOp::remainder) return below ? static_cast<A>(r + b) : r;
      return static_cast<A>(a / b - (below ? 1 : 0));
    } else {
      return static_cast<A>(op == BinaryOp::floor_divide ? a / b : a % b);
    }
  }
};

template <class E, class F> void function_map(const BinaryArgs& args, F f, Stream& stream) {
  using T = typename E::T;
  const T scalar = E::from_double(args.scalar);
  const Operand<E> a{static_cast<const T*>(args.a), scalar},
      b{static_cast<const T*>(args.b), scalar};
  map("binary", Map2<E, E, F>{static_cast<T*>(args.out), a, b, f}, args.loop, stream);
}

void binary_function(const BinaryArgs& args, Stream& stream) {
  if (is_integer_function(args.op) && args.dtype >= DType::float16)
    fail_dtype("binary", "an integer dtype", args.dtype);
  if (with_floating(args.dtype,
                    [&]<class E>() { function_map<E>(args, FloatingFunction{args.op}, stream); }))
    return;
  if (is_floating_function(args.op)) fail_dtype("binary", "a floating-point dtype", args.dtype);
  if (args.dtype == DType::bool_) fail_dtype("binary", "numbers", args.dtype);
  (void)with_integer(args.dtype, [&]<class E>() {
    if constexpr (E::kDType != DType::bool_)
      function_map<E>(args,
                      IntegerFunction<typename E::A>{
                          args.op, fault_site(device_error_record(stream),
                                              name_of_division(args.op), "divisors")},
                      stream);
  });
}

void binary(const BinaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (is_function(args.op)) return binary_function(args, stream);
  with_element(args.dtype, [&]<class E>() { binary_of<E>(args, stream); });
}

}  // namespace braid::cuda
