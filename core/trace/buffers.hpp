#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <braid/core/trace.hpp>

// Where spans are kept until somebody asks: a buffer a thread, which that thread alone appends to.
namespace braid::trace {

/// A span that has ended. Its events, where it has some, belong to the buffer until the next
/// recording.
struct Entry {
  Record record;
  Event* begin_event;
  Event* end_event;
};

/// Appends to the calling thread's buffer, which is emptied first if it holds spans of another
/// generation (recording). False if there is no room.
[[nodiscard]] bool append(const Entry& entry, std::uint64_t generation) noexcept;
/// f(entry, number of its thread) for all entries of the generation that are there by now.
void for_each_entry(std::uint64_t generation,
                    const std::function<void(const Entry&, std::int32_t)>& f);
/// Lets go of the buffers of threads that have ended; a thread that lives empties its own with its
/// first entry of another generation. Nobody may append.
void empty_buffers() noexcept;

/// A timed event of the device, one that is free or a new one; null where the device has no clock
/// or cannot make one.
[[nodiscard]] Event* take_event(Device device) noexcept;
void give_event(Device device, Event* event) noexcept;

}  // namespace braid::trace
