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

/// Handles are these numbers and up: no address, none of CUDA's own.
inline constexpr std::uint64_t kFirstHandle = 0x100;

/// Of a block given out or taken back this much is compared with the accesses of kernels in full,
/// and of the rest as much again, spread over what they touched: shadow memory is slow.
inline constexpr std::size_t kCheckedHead = std::size_t{64} << 10;

/// A stream. Destroyed ones stay as they are, so that a late use can be told.
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
  std::deque<OpPtr> queue;  ///< what is not done
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

/// A range from cudaMalloc, cudaHostAlloc, cudaHostRegister or their kin. Operations that use it
/// hold it, so its bytes outlive its free.
struct Allocation {
  char* base = nullptr;
  std::size_t bytes = 0, charged = 0;
  std::shared_ptr<Mapping> mapping;  ///< of a large block
  Place place = Place::device;
  int device = 0;
  bool registered = false;  ///< cudaHostRegister: the memory is the user's
  bool mapped = false;      ///< pinned memory that kernels may touch: not watched
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

/// A large block that was freed. Its addresses are not used again for a while.
struct Gone {
  std::shared_ptr<Mapping> mapping;
  std::size_t bytes;
  int device;
  const char *call, *free_call;
  Location where, freed_where;
};

/// Pinned memory that a copy reads or writes and the host must leave alone until it knows that the
/// copy is over.
struct Watch {
  OpPtr op;
  AllocationPtr allocation;
  char* begin;
  std::size_t bytes;
  bool written;  ///< by the copy
  bool checked;  ///< the bytes are known: the hash of the source, or the pattern in the target
  std::uint64_t hash = 0;
};

struct DeviceState {
  std::size_t capacity = 0, used = 0, peak = 0;
  std::uint64_t release_threshold = 0;
  cudaError_t sticky = cudaSuccess;
  std::string reason;  ///< the report that made it so
  std::set<int> peers;
  std::shared_ptr<StreamState> legacy;
};

/// Everything. `mutex` guards all members; `baton` is held by the one thread that runs operations,
/// and is taken first. The emulation (register_memory, check_range, …) is never called with `mutex`
/// held, because it asks happens_before.
class Runtime {
 public:
  Runtime();
  std::mutex baton, mutex;
  using Lock = std::unique_lock<std::mutex>;

  // streams.cpp, events.cpp
  [[nodiscard]] std::shared_ptr<StreamState> make_stream(int device, unsigned flags, int priority,
                                                         Location where);
  /// The stream of a handle, or null after a report.
  [[nodiscard]] std::shared_ptr<StreamState> find_stream(cudaStream_t handle, const char* call,
                                                         Location where);
  [[nodiscard]] std::shared_ptr<EventState> find_event(cudaEvent_t handle, const char* call,
                                                       Location where);

  void sweep_streams();
  [[nodiscard]] cudaError_t sticky_of(int device) const {
    return devices.empty() ? unusable() : devices[static_cast<std::size_t>(device)].sticky;
  }
  /// What every call says that needs a device, if there is none.
  [[nodiscard]] cudaError_t unusable() const noexcept {
    return environment_error.empty() ? cudaErrorNoDevice : cudaErrorInitializationError;
  }

  // executor.cpp
  /// Queues an operation; the caller runs `settle` after it has let the lock go.
  OpPtr enqueue(StreamState& stream, OpKind kind, const char* call, Location where,
                std::function<void(Op&)> run, std::vector<OpPtr> needs = {});
  OpPtr host_op(const char* call, int device, Location where);
  /// Keeps the queues within their limit.
  void settle();
  /// Runs operations until pred(), called under the lock, says so or nothing is left.
  void run_until(const std::function<bool()>& pred);
  void run_until(const OpPtr& op) {
    run_until([&] { return op->done; });
  }
  bool run_one(Lock& lock);
  /// The operation at the head of a queue is over. Under the lock.
  void finish(Op& op, StreamState& stream);
  /// Starts a host function on a thread of its own. Under the lock.
  void start_host_function(const OpPtr& op, const std::shared_ptr<StreamState>& stream,
                           std::function<void(Op&)> run, Lock& lock);
  void run_all();
  /// Runs one operation, if the baton is free and there is any.
  void run_some();
  /// From now on the host knows that what `clock` knows is over.
  void learn(const Clock& clock);
  [[nodiscard]] OpPtr find_op(std::uint32_t id) const;
  /// Waits for a device and learns that everything there is over.
  void synchronize_device(int device);

  // memory.cpp
  [[nodiscard]] AllocationPtr find_allocation(const void* p) const;
  /// The freed large block that held p, or null.
  [[nodiscard]] const Gone* find_gone(const void* p) const;
  cudaError_t allocate(void** pointer, std::size_t bytes, Place place, StreamState* stream,
                       bool mapped, const char* call, Location where);
  /// Takes what a free call names out of the hands of the program: the allocation, or null after a
  /// report.
  AllocationPtr take(void* pointer, Place place, bool registered, const char* call, Location where);
  /// Frees at the host's time, once everything that may use it has run.
  void free_now(const AllocationPtr& allocation, const char* call, Location where,
                bool check = true);
  /// Gives the bytes back, after a while.
  void bury(const AllocationPtr& allocation);
  /// Notes an access of an operation and reports its conflict; true if there was none.
  bool touch(const OpPtr& op, const AllocationPtr& allocation, const void* p, std::size_t bytes,
             Access access);
  /// Asks the checker of kernels about an operation of ours, and reports what it throws as `kind`
  /// (or as what it says). Not under the lock; with the baton.
  bool ask_checker(const Op& op, const std::function<void()>& question,
                   const ReportKind* kind = nullptr);
  /// Tells the checker of kernels that the current operation gave out [p, p + bytes).
  void tell_allocated(const Op& op, void* p, std::size_t bytes);
  /// Compares the end of an allocation with the accesses of kernels.
  void ask_release(const Op& op, const Allocation& allocation, ReportKind kind);

  // watches.cpp
  void watch(const OpPtr& op, const AllocationPtr& allocation, char* begin, std::size_t bytes,
             bool written);
  void check_watches(const OpPtr& op);
  /// A kernel starts: what its arguments point to is its own.
  void check_watches(const Op& op, const Closure& kernel);
  void host_learned();

  // reports.cpp
  void report(ReportKind kind, int device, Location where, Location other, const std::string& text);
  /// A report about a running operation: in sticky mode it ends the device.
  void report_op(ReportKind kind, const Op& op, Location other, const std::string& text,
                 cudaError_t code = cudaSuccess);
  void poison(int device, cudaError_t code, const std::string& reason = {});

  // injection.cpp
  [[nodiscard]] cudaError_t count_call(const char* function);

  void read_environment();
  void clear();

  // what is wrong with a BRAID_SIMT_* variable: there are no devices then
  std::string environment_error;
  std::vector<DeviceState> devices;
  // by number; 1 and 2 are CUDA's own handles
  std::map<std::uint64_t, std::shared_ptr<StreamState>> streams;
  std::vector<std::shared_ptr<StreamState>> active;  // with something in the queue
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
  // of destroyed streams; used again once the host knows that all is over
  std::vector<std::uint32_t> free_slots;

  std::deque<OpPtr> ops;  // those that may still be asked for; front() has number first_op
  std::uint32_t first_op = 1, next_op = 1, covered = 0;
  std::size_t pending = 0;
  std::size_t host_functions = 0;    // that run now
  std::condition_variable finished;  // one of them ended; with `mutex`
  Clock host;

  // live ones, and freed ones in the quarantine
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
  std::uint64_t report_count = 0;  // never set back
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;
  ReportMode mode = ReportMode::sticky;

  StreamOrder order = StreamOrder::fifo;
  std::mt19937_64 random{1};
  std::uint64_t schedule = 0;  // see simt::schedule
  std::size_t queue_limit = 1024;
  bool peer_supported = true;
  std::atomic<bool> peer_wrong{false};  // read by copies that run

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

/// As check_range, of the parts of [p, p + bytes) that kernels or copies have touched at all, and
/// at most about `most` bytes of them. Throws as check_range.
void check_touched(char* p, std::size_t bytes, std::size_t most);
/// check_range of the head of a block and check_touched of its rest. Throws as check_range.
void check_block(void* p, std::size_t bytes);

/// The one runtime. It is never destroyed: other statics may still free memory after it would have
/// been.
Runtime& runtime();

/// The thread runs an operation: CUDA allows no runtime call there.
extern thread_local bool executing;
extern thread_local int current_device;
extern thread_local cudaError_t last_error;
extern thread_local std::uint64_t reports_before;  ///< of the thread's latest runtime call

/// Keeps the error of a call for cudaGetLastError.
inline cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Calls of the runtime throw nothing: no host memory for what the twin keeps is a code too.
template <class F> cudaError_t without_exceptions(Runtime& r, F&& body) {
  try {
    return body(r);
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }
}

/// The body of a runtime call: counted, injected, remembered. body(Runtime&) returns the code.
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
/// A call that frees or destroys: it does its work whatever happens.
template <class F> cudaError_t release_call(const char* function, F&& body) {
  if (executing) return remember(cudaErrorNotPermitted);
  Runtime& r = runtime();
  const cudaError_t injected = r.count_call(function);
  const cudaError_t own = r.devices.empty() ? r.unusable() : without_exceptions(r, body);
  return remember(injected != cudaSuccess ? injected : own);
}

}  // namespace braid::simt::detail
