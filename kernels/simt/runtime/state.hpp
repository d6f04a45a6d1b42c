#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/device_memory.hpp"
#include "simt/runtime/control.hpp"
#include "simt/runtime/history.hpp"
#include "simt/runtime/mapping.hpp"
#include "simt/runtime/operation.hpp"

namespace braid::simt::detail {

/// Handles are numbers from here up: neither addresses nor CUDA's own handles.
inline constexpr std::uint64_t kFirstHandle = 0x100;

/// The number of bytes at the start of an allocated or freed block that are all compared with the
/// accesses of kernels. Of the rest, about as many bytes again are compared, spread over what was
/// accessed. Comparing more would be slow.
inline constexpr std::size_t kCheckedHead = std::size_t{64} << 10;

/// A stream. Destroyed streams are kept, so that a late use can be detected.
struct StreamState {
  std::uint64_t number = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false, alive = true, of_user = true;
  Location created, destroyed;
  std::uint32_t slot = 0;
  Clock clock;              ///< of its last operation
  OpPtr last;               ///< its last operation, done or not
  std::deque<OpPtr> queue;  ///< operations that are not done
  [[nodiscard]] bool blocking() const noexcept { return !legacy && !(flags & 1u); }
};

struct EventState {
  int device = 0;
  unsigned flags = 0;
  bool alive = true;
  Location created, destroyed;
  OpPtr record;  ///< the last record, done or not
};

enum class Place : std::uint8_t { pageable, pinned, device };

/// A range from cudaMalloc, cudaHostAlloc, cudaHostRegister or a similar call. Operations that use
/// it hold a reference, so its bytes outlive its free.
struct Allocation {
  char* base = nullptr;
  std::size_t bytes = 0, charged = 0;
  std::shared_ptr<Mapping> mapping;  ///< of a large block
  Place place = Place::device;
  int device = 0;
  bool registered = false;  ///< cudaHostRegister: the user owns the memory
  bool mapped = false;      ///< pinned memory that kernels may access: not watched
  bool async = false;       ///< from cudaMallocAsync
  bool freed = false;       ///< a free call was made
  bool unregistered = false;
  const char* call = "";
  Location where;
  const char* free_call = "";
  Location freed_where;
  OpPtr free_op;
  History history;
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();
};
using AllocationPtr = std::shared_ptr<Allocation>;

/// A large block that was freed. Its addresses are not reused for a while.
struct Gone {
  std::shared_ptr<Mapping> mapping;
  std::size_t bytes;
  int device;
  const char *call, *free_call;
  Location where, freed_where;
};

/// Pinned memory that a copy reads or writes. The host must not touch it until it knows that the
/// copy is complete.
struct Watch {
  OpPtr op;
  AllocationPtr allocation;
  char* begin;
  std::size_t bytes;
  bool written;  ///< by the copy
  bool checked;  ///< the bytes are known: the source's hash, or the pattern in the destination
  std::uint64_t hash = 0;
};

struct DeviceState {
  std::size_t capacity = 0, used = 0, peak = 0;
  std::uint64_t release_threshold = 0;
  cudaError_t sticky = cudaSuccess;
  std::string reason;  ///< the report that caused it
  std::set<int> peers;
  std::shared_ptr<StreamState> legacy;
};

/// The whole state. `mutex` guards all members. `baton` is held by the only thread that runs
/// operations, and is locked first. The emulation (register_memory, check_range, …) is never called
/// with `mutex` held, because it calls happens_before.
class Runtime {
 public:
  Runtime();
  std::mutex baton, mutex;
  using Lock = std::unique_lock<std::mutex>;

  // streams.cpp, events.cpp
  [[nodiscard]] std::shared_ptr<StreamState> make_stream(int device, unsigned flags, int priority,
                                                         Location where);
  /// Returns the stream of a handle. Makes a report and returns null if there is none.
  [[nodiscard]] std::shared_ptr<StreamState> find_stream(cudaStream_t handle, const char* call,
                                                         Location where);
  [[nodiscard]] std::shared_ptr<EventState> find_event(cudaEvent_t handle, const char* call,
                                                       Location where);

  void sweep_streams();
  [[nodiscard]] cudaError_t sticky_of(int device) const {
    return devices.empty() ? unusable() : devices[static_cast<std::size_t>(device)].sticky;
  }
  /// Returns the error of every call that needs a device, if there is none.
  [[nodiscard]] cudaError_t unusable() const noexcept {
    return environment_error.empty() ? cudaErrorNoDevice : cudaErrorInitializationError;
  }

  // executor.cpp
  /// Queues an operation. The caller runs `settle` after it has released the lock.
  OpPtr enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
                std::function<void(Op&)> run, std::vector<OpPtr> needs = {});
  OpPtr host_op(const char* call, int device, Location where);
  /// Runs operations until the queues are within their limit.
  void settle();
  /// Runs operations until pred(), which is called under the lock, returns true or nothing is left.
  void run_until(const std::function<bool()>& pred);
  void run_until(const OpPtr& op) {
    run_until([&] { return op->done; });
  }
  bool run_one(Lock& lock);
  /// Completes the operation at the head of a queue. Under the lock.
  void finish(Op& op, StreamState& stream);
  /// Starts a host function on its own thread. Under the lock.
  void start_host_function(const OpPtr& op, const std::shared_ptr<StreamState>& stream,
                           std::function<void(Op&)> run, Lock& lock);
  void run_all();
  /// Runs one operation, if the baton is free and an operation is ready.
  void run_some();
  /// Merges `clock` into the host's clock: the host now knows that the operations in it are
  /// complete.
  void learn(const Clock& clock);
  [[nodiscard]] OpPtr find_op(std::uint32_t id) const;
  /// Waits for a device. The host then knows that everything there is complete.
  void synchronize_device(int device);

  // memory.cpp
  [[nodiscard]] AllocationPtr find_allocation(const void* p) const;
  /// Returns the freed large block that contained p, or null.
  [[nodiscard]] const Gone* find_gone(const void* p) const;
  cudaError_t allocate(void** pointer, std::size_t bytes, Place place, StreamState* stream,
                       bool mapped, const char* call, Location where);
  /// Marks the allocation of a free call as freed and returns it. Makes a report and returns null
  /// if the call is wrong.
  AllocationPtr take(void* pointer, Place place, bool registered, const char* call, Location where);
  /// Frees at the host's time, after everything that may use the memory has run.
  void free_now(const AllocationPtr& allocation, const char* call, Location where,
                bool check = true);
  /// Retires freed memory: its bytes are released later.
  void bury(const AllocationPtr& allocation);
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

  // reports.cpp
  void report(ReportKind kind, int device, Location where, Location other, const std::string& text);
  /// Reports a finding in a running operation. In sticky mode it ends the device.
  void report_op(ReportKind kind, const Op& op, Location other, const std::string& text,
                 cudaError_t code = cudaSuccess);
  void poison(int device, cudaError_t code, const std::string& reason = {});

  // injection.cpp
  [[nodiscard]] cudaError_t count_call(const char* function);

  void read_environment();
  void clear();

  // what is wrong with a BRAID_SIMT_* variable; there are then no devices
  std::string environment_error;
  std::vector<DeviceState> devices;
  // by number; 1 and 2 are CUDA's own handles
  std::map<std::uint64_t, std::shared_ptr<StreamState>> streams;
  std::vector<std::shared_ptr<StreamState>> active;  // with a non-empty queue
  std::map<std::uint64_t, std::shared_ptr<EventState>> events;
  std::map<std::pair<std::thread::id, int>, std::shared_ptr<StreamState>> per_thread;
  struct Dead {
    Location created, destroyed;
  };
  std::map<std::uint64_t, Dead> dead_streams, dead_events;  // the latest kKeptDead of each
  static constexpr std::size_t kKeptDead = 65536;
  static void keep_dead(std::map<std::uint64_t, Dead>& dead, std::uint64_t number,
                        const Dead& what) {
    dead[number] = what;
    if (dead.size() > kKeptDead) dead.erase(dead.begin());
  }
  std::uint64_t next_stream = kFirstHandle, next_event = kFirstHandle;
  std::vector<std::uint32_t> ticks;  // by slot; slot 0 is the host
  // of destroyed streams; reused once the host knows that all their operations are complete
  std::vector<std::uint32_t> free_slots;

  std::deque<OpPtr> ops;  // those that may still be looked up; front() is number first_op
  std::uint32_t first_op = 1, next_op = 1, covered = 0;
  std::size_t pending = 0;
  std::size_t host_functions = 0;    // running now
  std::condition_variable finished;  // one of them has ended; used with `mutex`
  Clock host;

  // live allocations, and freed ones in the quarantine
  std::map<std::uintptr_t, AllocationPtr> allocations;
  std::list<AllocationPtr> quarantine;
  std::size_t quarantine_bytes = 0;
  std::map<std::uintptr_t, Gone> gone;
  std::deque<std::uintptr_t> gone_order;  // oldest first
  std::size_t gone_bytes = 0;
  std::vector<Watch> watches;
  std::map<const void*, int> shared_bytes_of;  // cudaFuncSetAttribute

  const char* failed_function = "";  // of the last injected failure
  std::vector<Report> found;
  std::string last_text;
  std::uint64_t report_count = 0;  // never reset
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;
  ReportMode mode = ReportMode::sticky;

  StreamOrder order = StreamOrder::fifo;
  std::mt19937_64 random{1};
  std::uint64_t schedule = 0;  // see simt::schedule
  std::size_t queue_limit = 1024;
  bool peer_supported = true;
  std::atomic<bool> peer_wrong{false};  // read by running copies

  struct Injection {
    std::uint64_t k = 0, seen = 0;
    cudaError_t code = cudaSuccess;
    bool persistent = false, fired = false;
    std::string function;
  } injection;
  std::uint64_t call_count = 0, legacy_count = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls_of;  ///< by name

  struct Logged {
    const std::string* kernel;
    int device;
    dim3 grid, block;
  };
  std::deque<Logged> log;
  std::unordered_map<const void*, std::string> kernel_names;
};

/// As check_range, for the parts of [p, p + bytes) that kernels or copies have accessed, and for
/// about `most` bytes of them at most. Throws as check_range.
void check_touched(char* p, std::size_t bytes, std::size_t most);
/// check_range of the start of a block, and check_touched of the rest. Throws as check_range.
void check_block(void* p, std::size_t bytes);

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
  return remember(r.devices.empty() ? r.unusable() : without_exceptions(r, body));
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
  const cudaError_t own = r.devices.empty() ? r.unusable() : without_exceptions(r, body);
  return remember(injected != cudaSuccess ? injected : own);
}

}  // namespace braid::simt::detail
