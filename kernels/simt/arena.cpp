#include "simt/arena.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "simt/fiber.hpp"

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace braid::simt {

namespace {
// more than the shared memory of any device, with room for red zones
constexpr std::size_t kArenaBytes = 1 << 20;
constexpr std::size_t kRedZone = 64;
}  // namespace

Arena::Arena() {
  void* p = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(p);
  slots_.reserve(16);
}

Arena::~Arena() {
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(memory_, kArenaBytes);
#endif
  munmap(memory_, kArenaBytes);
}

std::size_t Arena::bytes() const noexcept { return kArenaBytes; }

void Arena::reset() {
#if defined(SIMT_ASAN)
  __asan_poison_memory_region(memory_, slots_.empty() && end_ == 0 ? kArenaBytes : end_);
#endif
  slots_.clear();
  end_ = used_ = 0;
}

const SharedSlot* Arena::add(const detail::SharedArray* array, std::size_t bytes, std::size_t align,
                             const char* name, std::size_t element) {
  const std::size_t begin = (end_ + kRedZone + align - 1) / align * align;
  if (begin + bytes + kRedZone > kArenaBytes) return nullptr;
  end_ = begin + (bytes + 15) / 16 * 16;
  used_ = (used_ + align - 1) / align * align + bytes;
  char* p = memory_ + begin;
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(p, bytes);
#endif
  std::memset(p, 0xff, bytes);
  slots_.push_back({array, p, bytes, name, element});
  return &slots_.back();
}

}  // namespace braid::simt
