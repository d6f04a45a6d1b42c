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

/// A stack with a place to go on from. Switching is a call that saves the callee's registers and
/// comes back on another stack: 3 ns, against 170 ns for swapcontext, which asks the kernel for the
/// signal mask twice. A default-constructed Fiber stands for the host thread's own stack.
class alignas(64) Fiber {
 public:
  Fiber() = default;
  /// A new stack; `entry` is called on it at the first switch and must never return. `number`
  /// shifts the top of the stack: tops that all lie at the same place in a page fall into the same
  /// cache sets. Throws OutOfMemory as std::bad_alloc.
  Fiber(void (*entry)(), std::size_t number);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Forgets what was running on the stack; the next switch calls `entry` again.
  void reset();
  /// Goes from this fiber, which must be the running one, to `to`. Comes back when another fiber
  /// switches here.
  void switch_to(Fiber& to) {
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(&fake_stack_, to.stack_, to.bytes_);
#endif
    jump(to);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }
  /// The first statement of `entry`.
  static void entered() {
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  }
  /// Makes a default-constructed fiber know the host thread's stack.
  void adopt_thread_stack();

  [[nodiscard]] const char* stack() const noexcept { return stack_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// True if p is in the page under the stack, which a stack that overflows touches first.
  [[nodiscard]] bool in_guard(const void* p) const noexcept;

 private:
  void jump(Fiber& to);
  char* stack_ = nullptr;  // lowest usable byte; the guard lies under it
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
