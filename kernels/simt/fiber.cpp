#include "simt/fiber.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace braid::simt {

namespace {

#if defined(SIMT_ASAN) || !defined(__OPTIMIZE__)
constexpr std::size_t kStackBytes = 256 << 10;  // red zones and unoptimised frames are larger
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif

// Uses address space only. A frame larger than the guard could skip it and reach the stack below.
constexpr std::size_t kGuardBytes = 1 << 20;

}  // namespace

#if !defined(BRAID_SIMT_UCONTEXT)

// braid_simt_switch(save, load): pushes the callee-saved registers, stores the stack pointer to
// *save, and continues on `load`.
#if defined(__x86_64__)
asm(R"(
.text
.globl braid_simt_switch
.hidden braid_simt_switch
.type braid_simt_switch,@function
braid_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size braid_simt_switch,.-braid_simt_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl braid_simt_switch
.hidden braid_simt_switch
.type braid_simt_switch,%function
braid_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size braid_simt_switch,.-braid_simt_switch
)");
#endif
#endif

Fiber::Fiber(void (*entry)(), std::size_t number)
    : entry_(entry), shift_(number * 320 % 16384), owned_(true) {
  void* p = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(p, kGuardBytes, PROT_NONE) != 0) {
    munmap(p, kGuardBytes + kStackBytes);
    throw std::bad_alloc();
  }
  stack_ = static_cast<char*>(p) + kGuardBytes;
  bytes_ = kStackBytes;
  reset();
}

Fiber::~Fiber() {
  if (owned_) munmap(stack_ - kGuardBytes, kGuardBytes + bytes_);
}

bool Fiber::in_guard(const void* p) const noexcept {
  const char* a = static_cast<const char*>(p);
  return owned_ && a < stack_ && a >= stack_ - kGuardBytes;
}

void Fiber::reset() {
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(stack_, bytes_);
  fake_stack_ = nullptr;
#endif
#if defined(BRAID_SIMT_UCONTEXT)
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = bytes_ - shift_;
  context_.uc_link = nullptr;
  makecontext(&context_, entry_, 0);
#else
  const auto top = reinterpret_cast<std::uintptr_t>(stack_ + bytes_ - shift_) & ~std::uintptr_t{15};
  auto** word = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
  // the address of entry, where `ret` reads it, and above it a null return address, which ends a
  // back trace
  word -= 2;
  word[0] = reinterpret_cast<void*>(entry_);
  word[1] = nullptr;
  word -= 6;
  for (int i = 0; i < 6; ++i) word[i] = nullptr;
#else
  word -= 20;
  for (int i = 0; i < 20; ++i) word[i] = nullptr;
  word[11] = reinterpret_cast<void*>(entry_);
#endif
  stack_pointer_ = word;
#endif
}

void Fiber::adopt_thread_stack() {
  if (stack_ != nullptr) return;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* address = nullptr;
  pthread_attr_getstack(&attributes, &address, &bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = static_cast<char*>(address);
}

}  // namespace braid::simt
