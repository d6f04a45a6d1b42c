#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <braid/core/trace.hpp>

// Stores spans until they are read. Each thread has its own buffer and appends only to that.
namespace braid::trace {

/// A span that has ended. Its events, if any, belong to the buffer until the next recording.
struct Entry {
  Record record;
  Event* begin_event;
  Event* end_event;
};

/// Appends to the calling thread's buffer. Clears it first if it holds spans of another generation
/// (recording). Returns false if there is no room.
[[nodiscard]] bool append(const Entry& entry, std::uint64_t generation) noexcept;
/// Calls f(entry, index of its thread) for all entries of the generation that exist so far.
void for_each_entry(std::uint64_t generation,
                    const std::function<void(const Entry&, std::int32_t)>& f);
/// Frees the buffers of threads that have ended. Other threads clear their own at their first entry
/// of another generation. Requires that no thread appends.
void empty_buffers() noexcept;

/// Returns a timed event of the device, a free one or a new one. Null if the device has no clock or
/// cannot create an event.
[[nodiscard]] Event* take_event(Device device) noexcept;
/// Makes the event free for take_event.
void give_event(Device device, Event* event) noexcept;

}  // namespace braid::trace
