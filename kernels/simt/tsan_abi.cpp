// The functions that code compiled with -fsanitize=thread calls before every load and store. They
// are linked instead of the sanitizer's library, so that the checker sees every access of a kernel
// without a change to its source. Host code in the same files calls them too; it must not access
// device memory.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace {

using braid::simt::Access;
using braid::simt::Checker;

constinit std::atomic<bool> instrumented{false};

/// Handles an access outside kernels to an address that may be device memory.
__attribute__((noinline)) void look_on_host(const volatile void* p, Access mode, const void* pc) {
  if (!braid::simt::Scheduler::running())
    braid::simt::host_touches(const_cast<const void*>(p), mode != Access::read,
                              braid::simt::site_of(pc));
}

inline void look(const volatile void* p, std::size_t bytes, Access mode, const void* pc,
                 bool aligned = true) {
  if (Checker* checker = Checker::active())
    checker->access(const_cast<const void*>(p), bytes, mode, braid::simt::site_of(pc), aligned);
  else if (braid::simt::MemoryMap::may_be_device(const_cast<const void*>(p))) [[unlikely]]
    look_on_host(p, mode, pc);
}

}  // namespace

bool braid::simt::kernels_are_instrumented() noexcept { return instrumented; }

#define PC __builtin_return_address(0)
#define SIMT_ACCESS(n)                                                                       \
  void __tsan_read##n(void* p) { look(p, n, Access::read, PC); }                             \
  void __tsan_write##n(void* p) { look(p, n, Access::write, PC); }                           \
  void __tsan_unaligned_read##n(void* p) { look(p, n, Access::read, PC, false); }            \
  void __tsan_unaligned_write##n(void* p) { look(p, n, Access::write, PC, false); }          \
  void __tsan_volatile_read##n(void* p) { look(p, n, Access::read, PC); }                    \
  void __tsan_volatile_write##n(void* p) { look(p, n, Access::write, PC); }                  \
  void __tsan_unaligned_volatile_read##n(void* p) { look(p, n, Access::read, PC, false); }   \
  void __tsan_unaligned_volatile_write##n(void* p) { look(p, n, Access::write, PC, false); } \
  void __tsan_read_write##n(void* p) {                                                       \
    look(p, n, Access::read, PC);                                                            \
    look(p, n, Access::write, PC);                                                           \
  }                                                                                          \
  void __tsan_unaligned_read_write##n(void* p) {                                             \
    look(p, n, Access::read, PC, false);                                                     \
    look(p, n, Access::write, PC, false);                                                    \
  }

// In instrumented code, std::atomic and the __atomic builtins are compiled to calls of these.
#define SIMT_FETCH(n, T, name, operation)                \
  T __tsan_atomic##n##_##name(volatile T* p, T v, int) { \
    look(p, sizeof(T), Access::atomic, PC);              \
    return __atomic_##operation(p, v, __ATOMIC_SEQ_CST); \
  }
#define SIMT_ATOMICS(n, T)                                                                  \
  T __tsan_atomic##n##_load(const volatile T* p, int) {                                     \
    look(p, sizeof(T), Access::atomic, PC);                                                 \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##n##_store(volatile T* p, T v, int) {                                  \
    look(p, sizeof(T), Access::atomic, PC);                                                 \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  SIMT_FETCH(n, T, exchange, exchange_n)                                                    \
  SIMT_FETCH(n, T, fetch_add, fetch_add)                                                    \
  SIMT_FETCH(n, T, fetch_sub, fetch_sub)                                                    \
  SIMT_FETCH(n, T, fetch_and, fetch_and)                                                    \
  SIMT_FETCH(n, T, fetch_or, fetch_or)                                                      \
  SIMT_FETCH(n, T, fetch_xor, fetch_xor)                                                    \
  SIMT_FETCH(n, T, fetch_nand, fetch_nand)                                                  \
  int __tsan_atomic##n##_compare_exchange_strong(volatile T* p, T* c, T v, int, int) {      \
    look(p, sizeof(T), Access::atomic, PC);                                                 \
    return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  int __tsan_atomic##n##_compare_exchange_weak(volatile T* p, T* c, T v, int, int) {        \
    look(p, sizeof(T), Access::atomic, PC);                                                 \
    return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  T __tsan_atomic##n##_compare_exchange_val(volatile T* p, T c, T v, int, int) {            \
    look(p, sizeof(T), Access::atomic, PC);                                                 \
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return c;                                                                               \
  }

extern "C" {
SIMT_ACCESS(1)
SIMT_ACCESS(2)
SIMT_ACCESS(4)
SIMT_ACCESS(8)
SIMT_ACCESS(16)
SIMT_ATOMICS(8, std::uint8_t)
SIMT_ATOMICS(16, std::uint16_t)
SIMT_ATOMICS(32, std::uint32_t)
SIMT_ATOMICS(64, std::uint64_t)

// Called at program start by every instrumented file.
void __tsan_init() { instrumented = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
void __tsan_read_range(void* p, std::size_t n) { look(p, n, Access::read, PC, false); }
void __tsan_write_range(void* p, std::size_t n) { look(p, n, Access::write, PC, false); }
void* __tsan_memcpy(void* to, const void* from, std::size_t n) {
  look(from, n, Access::read, PC, false);
  look(to, n, Access::write, PC, false);
  return std::memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, std::size_t n) {
  look(from, n, Access::read, PC, false);
  look(to, n, Access::write, PC, false);
  return std::memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, std::size_t n) {
  look(to, n, Access::write, PC, false);
  return std::memset(to, value, n);
}
}
