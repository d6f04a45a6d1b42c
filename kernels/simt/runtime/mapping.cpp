#include "simt/runtime/mapping.hpp"

#include <sys/mman.h>

#include <new>

namespace braid::simt::detail {

Mapping::Mapping(std::size_t bytes) : bytes_(bytes) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(p);
}

Mapping::~Mapping() { munmap(data_, bytes_); }

void Mapping::discard() noexcept {
  (void)mmap(data_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0);
}

}  // namespace braid::simt::detail
