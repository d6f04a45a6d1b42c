#pragma once
#include "cuda/device/element.cuh"

namespace braid::cuda {

/// a + b as E computes it. Integers wrap around; bool is logical or.
template <class E> BRAID_DEVICE typename E::A added(typename E::A a, typename E::A b) {
  using A = typename E::A;
  if constexpr (E::kDType == DType::bool_) {
    return static_cast<A>(a | b);
  } else if constexpr (E::kFloating) {
    return a + b;
  } else {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
  }
}

}  // namespace braid::cuda
