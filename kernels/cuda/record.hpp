#pragma once
#include <cstddef>
#include <cstring>
#include <functional>

// Values of a kernel that differ from replay to replay of a recorded step: the kernel reads them
// from a table on the device.
namespace braid {

class Stream;

namespace cuda {

/// While `stream` records a step: adds a value of `bytes` bytes, now equal to `first`, to the
/// graph's table, and returns its address on the device. Before each replay update(value) changes
/// the host's copy. Otherwise returns null. Throws CaptureError if the table is full.
[[nodiscard]] void* record_value(Stream& stream, const void* first, std::size_t bytes,
                                 std::function<void(void*)> update);

/// For a kernel with the value make(args) of type T: while a step is recorded in which args.again
/// is set, returns where the kernel reads the value. Null otherwise.
template <class T, class Args, class Make>
[[nodiscard]] const T* recorded(Stream& stream, const Args& args, Make make) {
  if (args.again == nullptr) return nullptr;
  const T first = make(args);
  return static_cast<const T*>(
      record_value(stream, &first, sizeof first,
                   [present = Args(args), again = *args.again, make](void* value) mutable {
                     again(present);
                     const T now = make(present);
                     std::memcpy(value, &now, sizeof now);
                   }));
}

}  // namespace cuda
}  // namespace braid
