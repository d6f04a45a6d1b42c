#include "simt/memory_map.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include <braid/core/error.hpp>

namespace braid::simt {

namespace {

// Sets the state of the bytes [begin, end) of a region: whole words with memset, the partial words
// at both ends by mask.
void set_bits(std::uint8_t* state, std::size_t begin, std::size_t end, std::uint8_t bits) {
  const auto partial = [&](std::size_t word, std::size_t from, std::size_t to) {
    const auto mask = static_cast<unsigned>((1u << to) - (1u << from));
    const unsigned both = mask | mask << 4;
    state[word] = static_cast<std::uint8_t>((state[word] & ~both) | (bits & both));
  };
  if (begin >= end) return;
  std::size_t first = begin / 4;
  const std::size_t last = end / 4;
  if (first == last) {
    partial(first, begin % 4, end % 4);
    return;
  }
  if (begin % 4 != 0) partial(first++, begin % 4, 4);
  std::memset(state + first, bits, last - first);
  if (end % 4 != 0) partial(last, 0, end % 4);
}

}  // namespace

ShadowMemory::ShadowMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
               -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
}

ShadowMemory::~ShadowMemory() { munmap(data_, bytes_); }

void ShadowMemory::clear() noexcept { madvise(data_, bytes_, MADV_DONTNEED); }

MemoryMap& MemoryMap::instance() {
  // outlives anything that frees device memory at process exit
  static MemoryMap* map = new MemoryMap;
  return *map;
}

void MemoryMap::add(void* p, std::size_t bytes, MemoryKind kind, int device) {
  auto entry = std::make_unique<Entry>();
  const std::size_t words = (bytes + 3) / 4;
  entry->cells = std::make_unique<ShadowMemory>(words * sizeof(Cell));
  entry->state = std::make_unique<ShadowMemory>(words + 16);
  Region& r = entry->region;
  r.begin = static_cast<char*>(p);
  r.bytes = bytes;
  r.cells = static_cast<Cell*>(entry->cells->data());
  r.state = static_cast<std::uint8_t*>(entry->state->data());
  r.kind = kind;
  r.device = device;
  set_bits(r.state, 0, bytes, kind == MemoryKind::pinned ? 0xff : 0x0f);
  const std::lock_guard lock(mutex_);
  const auto after = entries_.upper_bound(r.begin);
  const bool hits_next = after != entries_.end() && after->first < r.begin + bytes;
  const bool hits_previous =
      after != entries_.begin() && std::prev(after)->second->region.holds(r.begin);
  if (hits_next || hits_previous)
    throw InternalError(str("register_memory: expected memory that is not registered, got ", p,
                            " of ", bytes, " bytes"));
  if (kind == MemoryKind::device) {
    const auto begin = reinterpret_cast<std::uintptr_t>(r.begin);
    lowest_ = std::min(lowest_.load(), begin);
    highest_ = std::max(highest_.load(), begin + bytes);
  }
  entries_.emplace(r.begin, std::move(entry));
  ++generation_;
}

void MemoryMap::remove(void* p) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(static_cast<char*>(p));
  if (found == entries_.end()) return;
  removed_.push_back(std::move(found->second));
  entries_.erase(found);
  ++generation_;
}

Region* MemoryMap::find(const void* p) {
  Region* r = below(p);
  return r && r->holds(static_cast<const char*>(p)) ? r : nullptr;
}

Region* MemoryMap::below(const void* p) {
  const std::lock_guard lock(mutex_);
  const auto after = entries_.upper_bound(const_cast<char*>(static_cast<const char*>(p)));
  return after == entries_.begin() ? nullptr : &std::prev(after)->second->region;
}

void MemoryMap::set_state(void* p, std::size_t bytes, std::uint8_t state) {
  Region* r = find(p);
  if (!r) return;
  const auto begin = static_cast<std::size_t>(static_cast<char*>(p) - r->begin);
  set_bits(r->state, begin, std::min(begin + bytes, r->bytes),
           r->kind == MemoryKind::pinned && state != 0 ? 0xff : state);
}

void MemoryMap::set_peer(int device, int peer, bool allowed) {
  const std::lock_guard lock(mutex_);
  if (allowed) peers_.insert({device, peer});
  else peers_.erase({device, peer});
  ++generation_;
}

bool MemoryMap::peer(int device, int peer) {
  const std::lock_guard lock(mutex_);
  return peers_.count({device, peer}) != 0;
}

void MemoryMap::collect() {
  const std::lock_guard lock(mutex_);
  removed_.clear();
}

void MemoryMap::clear_cells() {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, entry] : entries_) entry->cells->clear();
}

}  // namespace braid::simt
