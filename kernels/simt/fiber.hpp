#pragma once
#include <cstddef>

#if !defined(BRAID_SIMT_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define BRAID_SIMT_UCONTEXT 1
#endif
#if defined(BRAID_SIMT_UCONTEXT)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(SIMT_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace braid::simt {

/// An execution context with its own stack. A switch is a call that saves the callee-saved
/// registers and returns on another stack. It takes 3 ns, compared with 170 ns for swapcontext,
/// which makes a system call for the signal mask. A default-constructed Fiber represents the host
/// thread's own stack.
class alignas(64) Fiber {
 public:
  Fiber() = default;
  /// Allocates a stack. `entry` is called on it at the first switch and must never return. `number`
  /// shifts the top of the stack: tops at the same offset in a page would share cache sets. Throws
  /// std::bad_alloc.
  Fiber(void (*entry)(), std::size_t number);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Discards what was running on the stack. The next switch calls `entry` again.
  void reset();
  /// Switches from this fiber, which must be running, to `to`. Returns when another fiber switches
  /// back to this one.
  void switch_to(Fiber& to) {
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(&fake_stack_, to.stack_, to.bytes_);
#endif
    jump(to);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }
  /// Call it as the first statement of `entry`.
  static void entered() {
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  }
  /// Makes a default-constructed fiber represent the host thread's stack.
  void adopt_thread_stack();

  [[nodiscard]] const char* stack() const noexcept { return stack_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Returns true if p is in the guard area below the stack, which an overflow touches first.
  [[nodiscard]] bool in_guard(const void* p) const noexcept;

 private:
  void jump(Fiber& to);
  char* stack_ = nullptr;  // lowest usable byte; the guard is below it
  std::size_t bytes_ = 0;
  void (*entry_)() = nullptr;
  std::size_t shift_ = 0;
  bool owned_ = false;
#if defined(SIMT_ASAN)
  void* fake_stack_ = nullptr;
#endif
#if defined(BRAID_SIMT_UCONTEXT)
  ucontext_t context_{};
#else
  void* stack_pointer_ = nullptr;
#endif
};

#if !defined(BRAID_SIMT_UCONTEXT)
extern "C" void braid_simt_switch(void** save, void* load);
inline void Fiber::jump(Fiber& to) { braid_simt_switch(&stack_pointer_, to.stack_pointer_); }
#else
inline void Fiber::jump(Fiber& to) { swapcontext(&context_, &to.context_); }
#endif

}  // namespace braid::simt
