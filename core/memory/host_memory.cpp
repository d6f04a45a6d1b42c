#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstdint>
#include <cstdlib>

#include <braid/core/internal/caching_allocator.hpp>

namespace braid {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMapped = std::size_t{4} << 20;  // blocks of at least this size use mmap

void* map_aligned(std::size_t bytes) noexcept {
  const std::size_t asked = bytes + kHugePage;
  if (asked < bytes) return nullptr;
  void* const mapped =
      ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<char*>(mapped);
  const std::size_t head =
      (kHugePage - reinterpret_cast<std::uintptr_t>(mapped) % kHugePage) % kHugePage;
  if (head != 0) ::munmap(first, head);
  if (head != kHugePage) ::munmap(first + head + bytes, kHugePage - head);
#ifdef MADV_HUGEPAGE
  // only a hint, so its result is ignored
  ::madvise(first + head, bytes, MADV_HUGEPAGE);
#endif
  return first + head;
}

/// True if the machine can never hold so much. Where its kernel always overcommits
/// (vm.overcommit_memory=1), mmap would serve the request, and filling the memory would end the
/// process. 64 times what there is now: a virtual machine may get more while it runs.
bool is_beyond_machine(std::size_t bytes) noexcept {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return false;
  return bytes / info.mem_unit / 64 > static_cast<std::size_t>(info.totalram) + info.totalswap;
}

void* allocate(std::size_t bytes) noexcept {
  if (bytes < kMapped) return std::aligned_alloc(64, bytes);
  return is_beyond_machine(bytes) ? nullptr : map_aligned(bytes);
}

void release(void* data, std::size_t bytes) noexcept {
  if (bytes >= kMapped) {
    ::munmap(data, bytes);
  } else {
    std::free(data);
  }
}

}  // namespace

MemorySource host_memory_source() noexcept { return {&allocate, &release, true}; }

}  // namespace braid
