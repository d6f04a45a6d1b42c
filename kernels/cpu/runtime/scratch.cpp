#include "cpu/runtime/scratch.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <initializer_list>
#include <new>

// identifies the program or library that this is linked into; it stays loaded until the handler ran
extern "C" void* __dso_handle;

namespace braid::cpu {

namespace {

struct Held {
  void* data = nullptr;
  std::size_t bytes = 0;
};
constinit thread_local Held t_inner, t_outer;

constinit thread_local bool t_will_end = false;

void end_of_thread(void*) {
  t_will_end = false;
  for (Held* held : {&t_inner, &t_outer}) {
    std::free(held->data);
    *held = {};
  }
}

// Not a thread_local with a destructor: other destructors of the thread may run later and compute.
// The memory that they allocate is released by another registered call.
void release_at_the_end() {
  if (t_will_end) return;
  if (abi::__cxa_thread_atexit(end_of_thread, nullptr, &__dso_handle) != 0) throw std::bad_alloc();
  t_will_end = true;
}

void* grow(Held& held, std::size_t bytes) {
  const std::size_t wanted = (bytes + 4095) & ~std::size_t{4095};
  if (wanted < bytes) throw std::bad_alloc();
  release_at_the_end();
  std::free(held.data);
  held = {};
  held.data = std::aligned_alloc(64, wanted);
  if (held.data == nullptr) throw std::bad_alloc();
  held.bytes = wanted;
  return held.data;
}

void* of(Held& held, std::size_t bytes) {
  return bytes <= held.bytes && held.data != nullptr ? held.data : grow(held, bytes);
}

}  // namespace

void* scratch(std::size_t bytes) { return of(t_inner, bytes); }
void* outer_scratch(std::size_t bytes) { return of(t_outer, bytes); }

}  // namespace braid::cpu
