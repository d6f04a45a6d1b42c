#pragma once
// CUDA's atomics for a plain C++ compiler. They are real host atomics, so they also work when
// blocks run on several host threads.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simt/half.hpp"
#include "simt/location.hpp"
#include "simt/mode.hpp"

namespace braid::simt::detail {

/// Reports an atomic on [p, p + bytes) to the checker, the profiler and the watchdog. Throws
/// nothing; a finding leaves the kernel.
void atomic_access(const void* p, std::size_t bytes, Location where);
/// Reports an atomic that changed nothing (a lock that was taken, a flag that was read). The
/// watchdog counts these.
void atomic_in_vain(const void* p, Location where);

template <class T, class F> SIMT_NO_CHECK inline T update(T* p, Location where, F next) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "atomics of 1 to 8 bytes");
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  static_assert(sizeof(Bits) == sizeof(T));
  atomic_access(p, sizeof(T), where);
  using Aliased [[gnu::may_alias]] = Bits;
  auto* bits = reinterpret_cast<Aliased*>(p);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  do {
    after = __builtin_bit_cast(Bits, static_cast<T>(next(__builtin_bit_cast(T, before))));
  } while (
      !__atomic_compare_exchange_n(bits, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  if (after == before) atomic_in_vain(p, where);
  return __builtin_bit_cast(T, before);
}

template <class T> struct Same {
  using type = T;
};
template <class T>
using SameT = typename Same<T>::type;  // a parameter that takes no part in deduction

}  // namespace braid::simt::detail

#define SIMT_ATOMIC(name, expression)                                                        \
  template <class T>                                                                         \
  inline T name(T* p, ::braid::simt::detail::SameT<T> value,                                 \
                ::braid::simt::Location where = ::braid::simt::Location::current()) {        \
    return ::braid::simt::detail::update(                                                    \
        p, where, [value](T old) SIMT_NO_CHECK -> T { return static_cast<T>(expression); }); \
  }
SIMT_ATOMIC(atomicAdd, old + value)
SIMT_ATOMIC(atomicSub, old - value)
SIMT_ATOMIC(atomicMax, old < value ? value : old)
SIMT_ATOMIC(atomicMin, value < old ? value : old)
SIMT_ATOMIC(atomicExch, ((void)old, value))
SIMT_ATOMIC(atomicAnd, old& value)
SIMT_ATOMIC(atomicOr, old | value)
SIMT_ATOMIC(atomicXor, old ^ value)
SIMT_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
SIMT_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef SIMT_ATOMIC

template <class T>
inline T atomicCAS(T* p, ::braid::simt::detail::SameT<T> expected,
                   ::braid::simt::detail::SameT<T> value,
                   ::braid::simt::Location where = ::braid::simt::Location::current()) {
  return ::braid::simt::detail::update(p, where, [expected, value](T old) SIMT_NO_CHECK -> T {
    return old == expected ? value : old;
  });
}
