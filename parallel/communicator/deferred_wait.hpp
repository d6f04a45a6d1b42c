#pragma once

namespace braid::parallel {

/// While it exists, the calling thread's collectives over NCCL return when they are queued: the
/// current streams wait for them, the host does not. Communicator::wait then waits, and throws
/// their errors. Call it before anything outside can see the results.
class DeferredWait {
 public:
  DeferredWait() noexcept { ++count(); }
  ~DeferredWait() { --count(); }
  DeferredWait(const DeferredWait&) = delete;
  DeferredWait& operator=(const DeferredWait&) = delete;
  [[nodiscard]] static bool active() noexcept { return count() != 0; }

 private:
  [[nodiscard]] static int& count() noexcept {
    thread_local int active = 0;
    return active;
  }
};

}  // namespace braid::parallel
