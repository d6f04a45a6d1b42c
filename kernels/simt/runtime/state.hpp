#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "simt/device_memory.hpp"
#include "simt/runtime/capture.hpp"
#include "simt/runtime/control.hpp"
#include "simt/runtime/injection.hpp"
#include "simt/runtime/memory.hpp"
#include "simt/runtime/reports.hpp"
#include "simt/runtime/streams.hpp"

namespace braid::simt::detail {

inline constexpr int kMostDevices = 64;

/// The whole state: streams, memory, reports, injection. What concerns one of them alone is its own
/// function; here is what connects them. `mutex` guards all members. `baton` is held by the only
/// thread that runs operations, and is locked first. The emulation (register_memory, check_range,
/// …) is never called with `mutex` held, because it calls happens_before.
class Runtime {
 public:
  Runtime();
  std::mutex baton, mutex;
  using Lock = std::unique_lock<std::mutex>;

  Streams streams;
  Memory memory;
  Reports reports;
  Injection injection;
  Captures captures;

  // runtime.cpp, environment.cpp
  [[nodiscard]] std::size_t device_count() const noexcept { return memory.devices.size(); }
  void add_device(std::size_t capacity);
  void remove_devices();
  void read_environment();
  void clear();

  // streams.cpp, events.cpp
  /// Returns the stream of a handle. Makes a report and returns null if there is none.
  [[nodiscard]] StreamPtr find_stream(cudaStream_t handle, const char* call, Location where);
  [[nodiscard]] std::shared_ptr<EventState> find_event(cudaEvent_t handle, const char* call,
                                                       Location where);

  // executor.cpp
  /// Queues an operation. The caller runs `settle` after it has released the lock.
  OpPtr enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
                std::function<void(Op&)> run, std::vector<OpPtr> needs = {});
  /// Runs operations until the queues are within their limit.
  void settle();
  /// Runs operations until pred(), which is called under the lock, returns true or nothing is left.
  void run_until(const std::function<bool()>& pred);
  void run_until(const OpPtr& op) {
    run_until([&] { return op->done; });
  }
  bool run_one(Lock& lock);
  /// Starts a host function on its own thread. Under the lock.
  void start_host_function(const OpPtr& op, const StreamPtr& stream, std::function<void(Op&)> run,
                           Lock& lock);
  void run_all();
  /// Runs one operation, if the baton is free and an operation is ready.
  void run_some();
  /// As Streams::learn. Also checks the pinned memory that copies need no longer.
  void learn(const Clock& clock);
  /// Waits for a device. The host then knows that everything there is complete.
  void synchronize_device(int device);

  // capture.cpp
  /// Returns the error of a call that CUDA forbids while this thread, or in the global mode
  /// another one, captures; it invalidates these captures. Under the lock.
  [[nodiscard]] cudaError_t forbidden_while_capturing();
  /// The same for a call that would wait for the stream, for the device, or for the event.
  [[nodiscard]] cudaError_t forbidden_wait(const StreamState& stream);
  [[nodiscard]] cudaError_t forbidden_wait(int device);
  [[nodiscard]] cudaError_t forbidden_wait(const EventState& event);
  /// Returns the error of queueing work: that of a lost device, or of the legacy default stream
  /// while a blocking stream of its device is captured. Under the lock.
  [[nodiscard]] cudaError_t forbidden_work(const StreamState& stream, bool invalidates = true);
  /// Orders the stream's later work after a record, within a capture or outside. Under the lock.
  [[nodiscard]] cudaError_t wait_for_record(StreamState& stream, const OpPtr& record,
                                            const char* call, Location where);

  // memory.cpp
  cudaError_t allocate(void** pointer, std::size_t bytes, Place place, StreamState* stream,
                       bool mapped, const char* call, Location where);
  /// Marks the allocation of a free call as freed and returns it. Makes a report and returns null
  /// if the call is wrong.
  AllocationPtr take(void* pointer, Place place, bool registered, const char* call, Location where);
  /// Frees at the host's time, after everything that may use the memory has run.
  void free_now(const AllocationPtr& allocation, const char* call, Location where,
                bool check = true);
  /// Retires freed memory: its bytes are released later.
  void retire(const AllocationPtr& allocation);
  /// Records an access of an operation and reports its conflict. Returns true if there is none.
  bool touch(const OpPtr& op, const AllocationPtr& allocation, const void* p, std::size_t bytes,
             Access access);
  /// Calls the checker of kernels for one of our operations, and reports what it throws as `kind`
  /// (or as the kind of the finding). Requires the baton, not the lock.
  bool ask_checker(const Op& op, const std::function<void()>& question,
                   const ReportKind* kind = nullptr);
  /// Tells the checker of kernels that the current operation allocated [p, p + bytes).
  void tell_allocated(const Op& op, void* p, std::size_t bytes);
  /// Checks the release of an allocation against the accesses of kernels.
  void ask_release(const Op& op, const Allocation& allocation, ReportKind kind);

  // watches.cpp
  void watch(const OpPtr& op, const AllocationPtr& allocation, char* begin, std::size_t bytes,
             bool written);
  void check_watches(const OpPtr& op);
  /// Called when a kernel starts: it may access what its arguments point to.
  void check_watches(const Op& op, const Closure& kernel);
  void host_learned();

  // injection.cpp
  /// Counts a call of this thread. Returns the error that is injected into it, or cudaSuccess.
  [[nodiscard]] cudaError_t count_call(const char* function);
};

/// Returns the only runtime. It is never destroyed, because other static objects may free memory
/// later.
Runtime& runtime();

/// True while the thread runs an operation: CUDA allows no runtime call there.
extern thread_local bool executing;
extern thread_local int current_device;
extern thread_local cudaError_t last_error;
extern thread_local std::uint64_t reports_before;  ///< at the thread's latest runtime call

/// Records the error of a call for cudaGetLastError.
inline cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Runtime calls throw nothing: a lack of host memory for the emulation becomes an error code.
template <class F> cudaError_t without_exceptions(Runtime& r, F&& body) {
  try {
    return body(r);
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }
}

/// The body of a runtime call: counts it, injects failures, records the error. body(Runtime&)
/// returns the code.
template <class F> cudaError_t runtime_call(const char* function, F&& body) {
  if (executing) return remember(cudaErrorNotPermitted);
  Runtime& r = runtime();
  const cudaError_t injected = r.count_call(function);
  if (injected != cudaSuccess) return remember(injected);
  return remember(r.device_count() == 0 ? r.reports.unusable() : without_exceptions(r, body));
}
/// A call that needs no device.
template <class F> cudaError_t general_call(const char* function, F&& body) {
  if (executing) return remember(cudaErrorNotPermitted);
  Runtime& r = runtime();
  const cudaError_t injected = r.count_call(function);
  return remember(injected != cudaSuccess ? injected : without_exceptions(r, body));
}
/// A call that frees or destroys: it does its work even if a failure is injected.
template <class F> cudaError_t release_call(const char* function, F&& body) {
  if (executing) return remember(cudaErrorNotPermitted);
  Runtime& r = runtime();
  const cudaError_t injected = r.count_call(function);
  const cudaError_t own =
      r.device_count() == 0 ? r.reports.unusable() : without_exceptions(r, body);
  return remember(injected != cudaSuccess ? injected : own);
}

}  // namespace braid::simt::detail
