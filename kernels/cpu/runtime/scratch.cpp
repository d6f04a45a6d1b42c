#include "cpu/runtime/scratch.hpp"

#include <cstdlib>
#include <new>

namespace braid::cpu {

namespace {

constinit thread_local void* t_data = nullptr;
constinit thread_local std::size_t t_bytes = 0;

struct ThreadEnd {
  bool open = true;
  ~ThreadEnd() {
    std::free(t_data);
    t_data = nullptr;
    t_bytes = 0;
  }
};
thread_local ThreadEnd t_end;

void* grow(std::size_t bytes) {
  const std::size_t wanted = (bytes + 4095) & ~std::size_t{4095};
  if (wanted < bytes || !t_end.open) throw std::bad_alloc();  // asking t_end registers its destructor
  std::free(t_data);
  t_bytes = 0;
  t_data = std::aligned_alloc(64, wanted);
  if (t_data == nullptr) throw std::bad_alloc();
  t_bytes = wanted;
  return t_data;
}

}  // namespace

void* scratch(std::size_t bytes) { return bytes <= t_bytes && t_data != nullptr ? t_data : grow(bytes); }

}  // namespace braid::cpu
