#pragma once
#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/device/activation_math.cuh"

// What a product does with its results, on the GPU. It takes results that are rounded to the dtype,
// so that the bits are those of two ops. Only `add` is of sums that are not: see gemm.cuh.
namespace braid::cuda {

/// Loads N neighbouring elements: in one access if `pack`, else the first `count` one by one.
template <int N, class T>
BRAID_DEVICE void load_some(Pack<T, N>& to, const T* from, bool pack, std::int64_t count) {
  if (pack) to = load_pack<N>(from);
  else
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count) to.v[i] = from[i];
}
/// Stores them in the same way.
template <int N, class T>
BRAID_DEVICE void store_some(T* to, const Pack<T, N>& from, bool pack, std::int64_t count) {
  if (pack) store_pack(to, from);
  else
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count) to[i] = from.v[i];
}

/// Returns the epilogue of an element z; `other` is the element of GemmArgs::other at its place.
/// Without relu, which is applied before z is rounded: see finish().
template <class E>
BRAID_DEVICE typename E::T with_epilogue(Epilogue epilogue, typename E::T z, typename E::T other) {
  using A = typename E::A;
  const auto negative = [](typename E::T value) {  // or 0; a NaN is not
    if constexpr (E::kFloating) return E::load(value) <= A(0);
    else return static_cast<std::make_signed_t<A>>(E::load(value)) <= 0;
  };
  switch (epilogue) {
    case Epilogue::add: return E::store(E::load(z) + E::load(other));
    case Epilogue::relu_backward: return negative(other) ? E::store(A(0)) : z;
    default: break;
  }
  if constexpr (E::kFloating) {
    const A x = E::load(z), o = E::load(other), none = A(0);
    switch (epilogue) {
      case Epilogue::gelu:
        return E::store(activated<ActivationOp::gelu, Math>(x, none, none, none));
      case Epilogue::gelu_tanh:
        return E::store(activated<ActivationOp::gelu_tanh, Math>(x, none, none, none));
      case Epilogue::gelu_backward:
        return E::store(pulled_back<ActivationOp::gelu, Math>(o, x, none, none, none));
      case Epilogue::gelu_tanh_backward:
        return E::store(pulled_back<ActivationOp::gelu_tanh, Math>(o, x, none, none, none));
      default: break;
    }
  }
  return z;
}

/// Applies the epilogue to N neighbouring elements z. If `pack`, `other` is read and written in one
/// access; else the first `count` one by one.
template <class E, int N>
BRAID_DEVICE void apply_epilogue(Epilogue epilogue, typename E::T (&z)[N], typename E::T* other,
                                 bool pack, std::int64_t count) {
  using T = typename E::T;
  Pack<T, N> of{};
  if (is_gelu(epilogue)) {
#pragma unroll
    for (int i = 0; i < N; ++i) of.v[i] = z[i];
    if (other != nullptr) store_some(other, of, pack, count);
  } else {
    load_some(of, other, pack, count);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) z[i] = with_epilogue<E>(epilogue, z[i], of.v[i]);
}

}  // namespace braid::cuda
