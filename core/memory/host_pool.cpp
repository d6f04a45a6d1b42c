#include <cstddef>
#include <cstdint>
#include <new>

#include <braid/core/ref.hpp>

#include "memory/sanitizers.hpp"
#include "memory/thread_local.hpp"

// A pool for small host objects, which every op creates and destroys. Each thread keeps the objects
// that it freed in lists by size. The lists have no constructor and no destructor, so they work
// before and after all other thread-local objects. A guard object frees and closes them at thread
// exit.
namespace braid {

#if !BRAID_ASAN && !BRAID_TSAN

namespace {

constexpr std::size_t kStep = 64;
constexpr std::size_t kLargest = 1024;
constexpr std::size_t kClasses = kLargest / kStep;
constexpr std::uint32_t kKept = 256;  // objects per size class

struct FreeObject {
  FreeObject* next;
};

struct FreeList {
  FreeObject* head;
  std::uint32_t count;
  std::uint32_t limit;  // 0 before the thread's first release and after its end, else kKept
};

BRAID_FAST_THREAD_LOCAL constinit thread_local FreeList t_lists[kClasses] = {};
constinit thread_local bool t_closed = false;

struct ThreadEnd {
  bool open = true;
  ~ThreadEnd() {
    t_closed = true;
    for (std::size_t i = 0; i < kClasses; ++i) {
      t_lists[i].limit = 0;
      while (FreeObject* object = t_lists[i].head) {
        t_lists[i].head = object->next;
        ::operator delete(object);
      }
      t_lists[i].count = 0;
    }
  }
};
thread_local ThreadEnd t_end;

// Opens the thread's lists. Returns false if the thread is ending.
bool open_lists() noexcept {
  if (t_closed || !t_end.open) return false;  // reading t_end.open registers its destructor
  for (FreeList& list : t_lists) list.limit = kKept;
  return true;
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const std::size_t index = bytes == 0 ? 0 : (bytes - 1) / kStep;
  FreeList& list = t_lists[index];
  if (FreeObject* object = list.head) {
    list.head = object->next;
    --list.count;
    return object;
  }
  return ::operator new((index + 1) * kStep);
}

void pool_release(void* p, std::size_t bytes) noexcept {
  if (p == nullptr) return;
  if (bytes > kLargest) return ::operator delete(p);
  const std::size_t index = bytes == 0 ? 0 : (bytes - 1) / kStep;
  FreeList& list = t_lists[index];
  if (list.count >= list.limit && (list.limit != 0 || !open_lists())) return ::operator delete(p);
  auto* object = ::new (p) FreeObject{list.head};
  list.head = object;
  ++list.count;
}

#else  // no pool, so that the sanitizers see every allocation and release

void* pool_allocate(std::size_t bytes) { return ::operator new(bytes); }
void pool_release(void* p, std::size_t) noexcept { ::operator delete(p); }

#endif

}  // namespace braid
