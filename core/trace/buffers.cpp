#include "trace/buffers.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device_clock.hpp>

namespace braid::trace {
namespace {

constexpr std::size_t kChunk = 1024, kMostChunks = 256;  // entries per chunk; chunks per thread

struct Chunk {
  Entry entries[kChunk];
  std::atomic<std::size_t> count{0};  // the owner writes entries[count], then count
  std::atomic<Chunk*> next{nullptr};
};

/// The buffer of one thread, its owner, which alone appends to it. Readers hold the mutex, and so
/// does the owner while it clears the buffer.
struct Buffer {
  Chunk first;
  Chunk* last = &first;
  std::size_t chunks = 1;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> orphan{false};  // its thread has ended

  void clear() noexcept {
    for (Chunk* chunk = &first; chunk != nullptr;) {
      const std::size_t count = chunk->count.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < count; ++i) {
        const Entry& e = chunk->entries[i];
        if (e.begin_event != nullptr) give_event(e.record.device, e.begin_event);
        if (e.end_event != nullptr) give_event(e.record.device, e.end_event);
      }
      Chunk* const next = chunk->next.load(std::memory_order_acquire);
      if (chunk != &first) delete chunk;
      chunk = next;
    }
    first.count.store(0, std::memory_order_relaxed);
    first.next.store(nullptr, std::memory_order_relaxed);
    last = &first;
    chunks = 1;
  }
};

// Never destroyed, because worker threads may outlive main().
std::mutex& mutex() noexcept {
  static std::mutex& instance = *new std::mutex;
  return instance;
}
std::vector<Buffer*>& buffers() {
  static auto& list = *new std::vector<Buffer*>;
  return list;
}

constexpr int kTypes = 2, kDevices = 64;
struct FreeEvents {
  std::mutex mutex;
  std::vector<Event*> list;
};
FreeEvents& free_events(Device device) {
  static FreeEvents* const all = new FreeEvents[kTypes * kDevices];
  return all[static_cast<int>(device.type()) * kDevices + device.index()];
}

/// The calling thread's buffer. When the thread ends, the buffer stays for the readers.
struct Mine {
  Buffer* buffer = nullptr;
  ~Mine() {
    if (buffer != nullptr) buffer->orphan.store(true, std::memory_order_release);
    buffer = nullptr;
  }
};
thread_local Mine mine;

Buffer* open_buffer() noexcept {
  if (mine.buffer != nullptr) return mine.buffer;
  auto* const fresh = new (std::nothrow) Buffer;
  if (fresh == nullptr) return nullptr;
  try {
    const std::lock_guard lock(mutex());
    buffers().push_back(fresh);
  } catch (...) {  // no memory for the list
    delete fresh;
    return nullptr;
  }
  return mine.buffer = fresh;
}

}  // namespace

bool append(const Entry& entry, std::uint64_t generation) noexcept {
  Buffer* const buffer = open_buffer();
  if (buffer == nullptr) return false;
  if (buffer->generation.load(std::memory_order_relaxed) != generation) {
    const std::lock_guard lock(mutex());
    buffer->clear();
    buffer->generation.store(generation, std::memory_order_relaxed);
  }
  Chunk* chunk = buffer->last;
  std::size_t count = chunk->count.load(std::memory_order_relaxed);
  if (count == kChunk) {
    if (buffer->chunks == kMostChunks) return false;
    auto* const fresh = new (std::nothrow) Chunk;
    if (fresh == nullptr) return false;
    chunk->next.store(fresh, std::memory_order_release);
    buffer->last = chunk = fresh;
    ++buffer->chunks;
    count = 0;
  }
  chunk->entries[count] = entry;
  chunk->count.store(count + 1, std::memory_order_release);
  return true;
}

void for_each_entry(std::uint64_t generation,
                    const std::function<void(const Entry&, std::int32_t)>& f) {
  const std::lock_guard lock(mutex());
  std::int32_t thread = 0;
  for (const Buffer* buffer : buffers()) {
    if (buffer->generation.load(std::memory_order_relaxed) != generation) continue;
    for (const Chunk* chunk = &buffer->first; chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_acquire)) {
      const std::size_t count = chunk->count.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < count; ++i) f(chunk->entries[i], thread);
    }
    ++thread;
  }
}

void empty_buffers() noexcept {
  const std::lock_guard lock(mutex());
  std::vector<Buffer*>& list = buffers();
  for (auto at = list.begin(); at != list.end();) {
    Buffer* const buffer = *at;
    if (!buffer->orphan.load(std::memory_order_acquire)) {
      ++at;
      continue;
    }
    buffer->clear();
    delete buffer;
    at = list.erase(at);
  }
}

Event* take_event(Device device) noexcept {
  try {
    FreeEvents& free = free_events(device);
    {
      const std::lock_guard lock(free.mutex);
      if (!free.list.empty()) {
        Event* const event = free.list.back();
        free.list.pop_back();
        return event;
      }
    }
    DeviceClock* const clock = device_clock(device);
    return clock == nullptr ? nullptr : clock->make_timed_event().release();
  } catch (...) {  // lost device, or no memory: the span uses the host's clock
    return nullptr;
  }
}

void give_event(Device device, Event* event) noexcept {
  try {
    FreeEvents& free = free_events(device);
    const std::lock_guard lock(free.mutex);
    free.list.push_back(event);
  } catch (...) {
    delete event;
  }
}

}  // namespace braid::trace
