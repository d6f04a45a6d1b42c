// Finds what the address of a kernel's access belongs to: shared memory, an allocation, or memory
// that may be read without a check.
#include <link.h>

#include <algorithm>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

Region* Checker::find_shared(const char* a) noexcept {
  for (Region& r : shared_)
    if (r.holds(a)) return &r;
  return nullptr;
}

Region* Checker::find(const char* a, std::size_t bytes, Access mode, Site site) {
  if (static_cast<std::size_t>(a - arena_) < arena_bytes_) {
    if (Region* r = find_shared(a)) return r;
    leave_after([&] { note_nowhere(a, bytes, mode, site); });
  }
  if (a >= constants_.first && a < constants_.second && mode == Access::read) return nullptr;
  auto& map = MemoryMap::instance();
  if (generation_ != map.generation()) {
    generation_ = map.generation();
    std::fill(std::begin(recent_), std::end(recent_), nullptr);
  }
  for (Region* r : recent_)
    if (r && r->holds(a)) return r;
  Region* r = map.find(a);
  if (!r) {
    if (harmless(a, mode)) return nullptr;
    leave_after([&] { note_nowhere(a, bytes, mode, site); });
  }
  if (r->kind == MemoryKind::device && device_ >= 0 && r->device != device_ &&
      !map.peer(device_, r->device))
    report(Finding::wrong_device, r, site, [&] {
      return str(mode == Access::read ? "reads " : "writes ", describe(*r, a),
                 " from a kernel on cuda:", device_, " without peer access");
    });
  recent_[next_recent_++ % std::size(recent_)] = r;
  return r;
}

// True for reads of launch arguments and of the program's constants, which are read-only at run
// time.
bool Checker::harmless(const char* a, Access mode) {
  if (mode != Access::read) return false;
  const char* closure = reinterpret_cast<const char*>(&scheduler_->closure());
  if (static_cast<std::size_t>(a - closure) <
      std::max<std::size_t>(scheduler_->closure().bytes, sizeof(Closure)))
    return true;
  struct Search {
    const char* address;
    std::pair<const char*, const char*> found;
  } search{a, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & p = info->dlpi_phdr[i];
          if (p.p_type != PT_GNU_RELRO && (p.p_type != PT_LOAD || (p.p_flags & PF_W) != 0))
            continue;
          const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr);
          if (s.address >= begin && s.address < begin + p.p_memsz) {
            s.found = {begin, begin + p.p_memsz};
            return 1;
          }
        }
        return 0;
      },
      &search);
  if (!search.found.first) return false;
  constants_ = search.found;
  return true;
}

}  // namespace braid::simt
