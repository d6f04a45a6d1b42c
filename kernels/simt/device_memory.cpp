#include "simt/device_memory.hpp"

#include <atomic>
#include <mutex>

#include "simt/checker.hpp"
#include "simt/config.hpp"
#include "simt/grid_lock.hpp"

namespace braid::simt {

namespace {
std::atomic<bool (*)(std::uint32_t, std::uint32_t)> order_hook{&detail::happens_before};
std::atomic<std::string (*)(std::uint32_t)> describe_hook{&detail::describe_op};

// Returns the registered range that contains p, or nullptr.
Region* region_of(const void* p) { return MemoryMap::instance().find(p); }
}  // namespace

bool op_happens_before(std::uint32_t earlier, std::uint32_t op) {
  return order_hook.load()(earlier, op);
}
std::string op_description(std::uint32_t op) {
  return op == 0 ? std::string("the host") : describe_hook.load()(op);
}

namespace detail {
void set_op_hooks(bool (*order)(std::uint32_t, std::uint32_t),
                  std::string (*describe)(std::uint32_t)) {
  order_hook = order ? order : &happens_before;
  describe_hook = describe ? describe : &describe_op;
}
}  // namespace detail

void register_memory(void* p, std::size_t bytes, MemoryKind kind, int device) {
  MemoryMap::instance().add(p, bytes, kind, device);
}
void unregister_memory(void* p) { MemoryMap::instance().remove(p); }

std::optional<MemoryRange> find_memory(const void* p) {
  const Region* r = region_of(p);
  if (!r) return std::nullopt;
  return MemoryRange{r->begin, r->bytes, r->kind, r->device};
}

void annotate_allocated(void* p, std::size_t bytes) {
  MemoryMap::instance().set_state(p, bytes, 0x0f);
}
void annotate_freed(void* p, std::size_t bytes) { MemoryMap::instance().set_state(p, bytes, 0); }
void set_peer_access(int device, int peer, bool allowed) {
  MemoryMap::instance().set_peer(device, peer, allowed);
}

void host_touches(const void* p, bool write, Site site) {
  const std::optional<MemoryRange> memory = find_memory(p);
  if (!memory || memory->kind != MemoryKind::device || !config().checks) return;
  const SourceLine where = source_line(site);
  detail::report_host_access(memory->device, write, where.file, where.line);
}

void set_current_op(std::uint32_t op, int device) {
  const std::lock_guard lock(grid_mutex());
  Checker::instance().set_op(op, device);
}

void check_range(const void* p, std::size_t bytes, bool write) {
  Region* r = bytes == 0 ? nullptr : region_of(p);
  if (!r) return;
  const char* a = static_cast<const char*>(p);
  if (!config().checks || !kernels_are_instrumented()) {
    if (write) MemoryMap::instance().set_state(const_cast<char*>(a), bytes, 0xff);
    return;
  }
  const std::lock_guard lock(grid_mutex());
  Checker& checker = Checker::instance();
  checker.operation_begin();
  checker.range(*r, a, bytes, write);
  if (write) MemoryMap::instance().set_state(const_cast<char*>(a), bytes, 0xff);
}

void check_copy(void* destination, const void* source, std::size_t bytes) {
  check_range(source, bytes, false);
  check_range(destination, bytes, true);
  const Region* from = region_of(source);
  const Region* to = region_of(destination);
  if (!from || !to || bytes == 0 || to->kind == MemoryKind::pinned) return;
  const auto s = static_cast<std::size_t>(static_cast<const char*>(source) - from->begin);
  const auto d = static_cast<std::size_t>(static_cast<char*>(destination) - to->begin);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 4 == 0 && (s + i) % 4 == 0 && bytes - i >= 4 && from->state[(s + i) / 4] >> 4 == 15) {
      i += 3;
      continue;
    }
    if (!(from->state[(s + i) / 4] >> (4 + (s + i) % 4) & 1))
      to->state[(d + i) / 4] &= static_cast<std::uint8_t>(~(0x10u << (d + i) % 4));
  }
}

}  // namespace braid::simt
