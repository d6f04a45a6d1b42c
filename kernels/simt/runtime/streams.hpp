#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "simt/location.hpp"
#include "simt/runtime/operation.hpp"

namespace braid::simt::detail {

/// Handles are numbers from here up: neither addresses nor CUDA's own handles.
inline constexpr std::uint64_t kFirstHandle = 0x100;

/// A stream. Destroyed streams are kept, so that a late use can be detected.
struct StreamState {
  std::uint64_t number = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false, alive = true, of_user = true;
  Location created, destroyed;
  std::uint32_t slot = 0;
  Clock clock;                       ///< of its last operation
  OpPtr last;                        ///< its last operation, done or not
  std::deque<OpPtr> queue;           ///< operations that are not done
  std::shared_ptr<Capture> capture;  ///< that records its work; null if it is queued
  [[nodiscard]] bool blocking() const noexcept { return !legacy && !(flags & 1u); }
};
using StreamPtr = std::shared_ptr<StreamState>;

struct EventState {
  int device = 0;
  unsigned flags = 0;
  bool alive = true;
  Location created, destroyed;
  OpPtr record;  ///< the last record, done or not
};

/// Where a stream or an event that is gone was created and destroyed.
struct Dead {
  Location created, destroyed;
};

/// The streams and events, the operations that are queued on them, and the clocks that order these
/// operations. Runs nothing. Guarded by the runtime's mutex.
struct Streams {
  /// Adds a device with its legacy default stream.
  void add_device();
  /// Returns a new stream, which has no number yet.
  [[nodiscard]] StreamPtr make(int device, unsigned flags, int priority, Location where);
  /// Removes destroyed streams whose operations the host knows to be complete. Their slots can be
  /// reused.
  void sweep();
  /// Appends an operation to the queue of a stream.
  OpPtr enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
                std::function<void(Op&)> run, std::vector<OpPtr> needs);
  /// Makes a point in the host's time.
  OpPtr host_op(const char* call, int device, Location where);
  /// Forgets operations that are ordered before everything that can still run, if there are many.
  /// Returns true if there are.
  bool prune();
  [[nodiscard]] OpPtr find_op(std::uint32_t id) const;
  /// Returns the streams whose next operation can run now.
  [[nodiscard]] std::vector<StreamState*> ready() const;
  /// Completes the operation at the head of a queue.
  void finish(Op& op, StreamState& stream);
  /// Merges `clock` into the host's clock: the host now knows that the operations in it are
  /// complete.
  void learn(const Clock& clock);
  /// Destroys everything that programs created. The host then knows that all operations are
  /// complete, and no queue may contain any.
  void clear();

  std::vector<StreamPtr> legacy;  // by device: the legacy default streams
  // by number; 1 and 2 are CUDA's own handles
  std::map<std::uint64_t, StreamPtr> by_number;
  std::vector<StreamPtr> active;  // with a non-empty queue
  std::map<std::uint64_t, std::shared_ptr<EventState>> events;
  std::map<std::pair<std::thread::id, int>, StreamPtr> per_thread;
  std::map<std::uint64_t, Dead> dead_streams, dead_events;  // the latest kKeptDead of each
  static constexpr std::size_t kKeptDead = 65536;
  static void keep_dead(std::map<std::uint64_t, Dead>& dead, std::uint64_t number,
                        const Dead& what) {
    dead[number] = what;
    if (dead.size() > kKeptDead) dead.erase(dead.begin());
  }
  std::uint64_t next_stream = kFirstHandle, next_event = kFirstHandle;

  std::vector<std::uint32_t> ticks = {0};  // by slot; slot 0 is the host
  // of destroyed streams; reused once the host knows that all their operations are complete
  std::vector<std::uint32_t> free_slots;
  Clock host;

  std::deque<OpPtr> ops;  // those that may still be looked up; front() is number first_op
  std::uint32_t first_op = 1, next_op = 1, covered = 0;
  std::size_t pending = 0;
  std::size_t queue_limit = 1024;
  std::uint64_t legacy_count = 0;    // operations queued on legacy default streams
  std::size_t host_functions = 0;    // running now
  std::condition_variable finished;  // one of them has ended; used with the runtime's mutex
};

}  // namespace braid::simt::detail
