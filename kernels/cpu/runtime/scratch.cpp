#include "cpu/runtime/scratch.hpp"

#include <cstdlib>
#include <initializer_list>
#include <new>

namespace braid::cpu {

namespace {

struct Held {
  void* data = nullptr;
  std::size_t bytes = 0;
};
constinit thread_local Held t_inner, t_outer;

struct ThreadEnd {
  bool open = true;
  ~ThreadEnd() {
    for (Held* held : {&t_inner, &t_outer}) {
      std::free(held->data);
      *held = {};
    }
  }
};
thread_local ThreadEnd t_end;

void* grow(Held& held, std::size_t bytes) {
  const std::size_t wanted = (bytes + 4095) & ~std::size_t{4095};
  if (wanted < bytes || !t_end.open) throw std::bad_alloc();  // asking t_end registers its destructor
  std::free(held.data);
  held = {};
  held.data = std::aligned_alloc(64, wanted);
  if (held.data == nullptr) throw std::bad_alloc();
  held.bytes = wanted;
  return held.data;
}

void* of(Held& held, std::size_t bytes) { return bytes <= held.bytes && held.data != nullptr ? held.data : grow(held, bytes); }

}  // namespace

void* scratch(std::size_t bytes) { return of(t_inner, bytes); }
void* outer_scratch(std::size_t bytes) { return of(t_outer, bytes); }

}  // namespace braid::cpu
