#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/report.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/table_parts.hpp"

// out = a op b, elementwise. Integers wrap around; for bool, add is "or" and mul is "and".
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

template <class E> void binary_of(const BinaryArgs& args, Stream& stream) {
  using T = typename E::T;
  using A = typename E::A;
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

void binary(const BinaryArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (is_function(args.op)) return binary_function(args, stream);
  with_element(args.dtype, [&]<class E>() { binary_of<E>(args, stream); });
}

}  // namespace braid::cuda
