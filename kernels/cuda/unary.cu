#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/table_parts.hpp"

// out = f(x), elementwise.
namespace braid::cuda {

struct Negate {
  template <class A> BRAID_DEVICE A operator()(A x) const {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::make_unsigned_t<A>{0} - static_cast<std::make_unsigned_t<A>>(x));
    else return -x;
  }
};
struct Absolute {
  template <class A> BRAID_DEVICE A operator()(A x) const {
    if constexpr (std::is_same_v<A, float>) return ::fabsf(x);
    else if constexpr (std::is_same_v<A, double>) return ::fabs(x);
    else if constexpr (std::is_signed_v<A>) return x < A{0} ? Negate{}(x) : x;
    else return x;
  }
};
/// A NaN fails the comparison and stays.
struct Relu {
  template <class A> BRAID_DEVICE A operator()(A x) const { return x <= A{0} ? A{0} : x; }
};
struct Square {
  template <class A> BRAID_DEVICE A operator()(A x) const {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(static_cast<std::make_unsigned_t<A>>(x) *
                            static_cast<std::make_unsigned_t<A>>(x));
    else return x * x;
  }
};
/// ±0 and NaN stay.
struct Sign {
  template <class A> BRAID_DEVICE A operator()(A x) const {
    if constexpr (std::is_unsigned_v<A>) return x != A{0} ? A(1) : A(0);
    else return x > A{0} ? A(1) : x < A{0} ? A(-1) : x;
  }
};
struct Exp {
  template <class A> BRAID_DEVICE A operator()(A x) const { return exp_of(x); }
};
struct Log {
  template <class A> BRAID_DEVICE A operator()(A x) const { return log_of(x); }
};
struct Sqrt {
  template <class A> BRAID_DEVICE A operator()(A x) const { return sqrt_of(x); }
};
struct ReciprocalSqrt {
  template <class A> BRAID_DEVICE A operator()(A x) const { return A(1) / sqrt_of(x); }
};
struct Tanh {
  template <class A> BRAID_DEVICE A operator()(A x) const { return tanh_of(x); }
};
struct Sigmoid {
  template <class A> BRAID_DEVICE A operator()(A x) const { return sigmoid_of(x); }
};
struct Sin {
  template <class A> BRAID_DEVICE A operator()(A x) const { return sin_of(x); }
};
struct Cos {
  template <class A> BRAID_DEVICE A operator()(A x) const { return cos_of(x); }
};
struct Reciprocal {
  template <class A> BRAID_DEVICE A operator()(A x) const { return A(1) / x; }
};
/// x^0, x^1 and x^3; the square and the reciprocal have separate functors.
struct SmallPower {
  int exponent;
  template <class A> BRAID_DEVICE A operator()(A x) const {
    return exponent == 0 ? A(1) : exponent == 1 ? x : x * x * x;
  }
};
/// In float only if the exponent is a float: rounding it would cause an error proportional to log
/// x.
struct Power {
  double exponent;
  bool narrow;
  template <class A> BRAID_DEVICE A operator()(A x) const {
    if constexpr (std::is_same_v<A, float>) {
      if (narrow) return pow_of(x, static_cast<float>(exponent));
    }
    return static_cast<A>(pow_of(static_cast<double>(x), exponent));
  }
};

template <class F> void floating_map(const UnaryArgs& args, F f, Stream& stream) {
  const bool known = with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    map("unary", Map1<E, E, F>{static_cast<T*>(args.out), static_cast<const T*>(args.x), f},
        args.loop, stream);
  });
  if (!known) fail_dtype("unary", "a floating-point dtype", args.dtype);
}

template <class F> void number_map(const UnaryArgs& args, F f, Stream& stream) {
  if (is_floating(args.dtype)) return floating_map(args, f, stream);
  if (args.dtype == DType::bool_) fail_dtype("unary", "numbers", args.dtype);
  (void)with_integer(args.dtype, [&]<class E>() {
    using T = typename E::T;
    if constexpr (E::kDType != DType::bool_)
      map("unary", Map1<E, E, F>{static_cast<T*>(args.out), static_cast<const T*>(args.x), f},
          args.loop, stream);
  });
}

void power(const UnaryArgs& args, Stream& stream) {
  const double alpha = args.alpha;
  if (alpha == 0.0 || alpha == 1.0 || alpha == 3.0)
    return floating_map(args, SmallPower{static_cast<int>(alpha)}, stream);
  if (alpha == 2.0) return floating_map(args, Square{}, stream);
  if (alpha == -1.0) return floating_map(args, Reciprocal{}, stream);
  // The comparison is true for infinities and false for NaN, which then uses pow of double.
  floating_map(args, Power{alpha, static_cast<double>(static_cast<float>(alpha)) == alpha}, stream);
}

void unary(const UnaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (is_function(args.op)) return unary_function(args, stream);
  switch (args.op) {
    case UnaryOp::neg: return number_map(args, Negate{}, stream);
    case UnaryOp::abs: return number_map(args, Absolute{}, stream);
    case UnaryOp::relu: return number_map(args, Relu{}, stream);
    case UnaryOp::exp: return floating_map(args, Exp{}, stream);
    case UnaryOp::log: return floating_map(args, Log{}, stream);
    case UnaryOp::sqrt: return floating_map(args, Sqrt{}, stream);
    case UnaryOp::rsqrt: return floating_map(args, ReciprocalSqrt{}, stream);
    case UnaryOp::tanh: return floating_map(args, Tanh{}, stream);
    case UnaryOp::sigmoid: return floating_map(args, Sigmoid{}, stream);
    case UnaryOp::sin: return floating_map(args, Sin{}, stream);
    case UnaryOp::cos: return floating_map(args, Cos{}, stream);
    case UnaryOp::reciprocal: return floating_map(args, Reciprocal{}, stream);
    case UnaryOp::square: return number_map(args, Square{}, stream);
    case UnaryOp::sign: return number_map(args, Sign{}, stream);
    case UnaryOp::pow_scalar: return power(args, stream);
    default: break;  // the functions in unary_functions.cu
  }
}

}  // namespace braid::cuda
