#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simt/launch.hpp"
#include "simt/location.hpp"
#include "simt/runtime/cuda_types.hpp"

/// Controls and queries of the emulation of the CUDA runtime, for tests and the engine, beyond
/// CUDA's own calls: reports, injected failures, execution order, and live objects. Thread-safe,
/// but not to be called from a host function on a stream.
namespace braid::simt {

/// The kinds of findings of the checker of streams. Findings in kernels are also reported this way,
/// with kind `kernel`.
enum class ReportKind : std::uint8_t {
  /// two operations access the same memory, at least one of them writes, and nothing orders them
  race,
  /// an operation uses memory that was freed before it, or that nothing orders with the free
  use_after_free,
  /// an operation uses memory of cudaMallocAsync before its stream is ordered after the allocation
  use_before_alloc,
  double_free,  ///< memory freed twice
  /// a freed pointer that is not the start of an allocation, or freed by the wrong function
  bad_free,
  out_of_bounds,  ///< a copy or memset past the end of its allocation
  overlap,        ///< a copy whose source and destination share bytes
  wrong_kind,     ///< a copy whose direction contradicts its pointers, a memset of host memory
  /// a stream or event of another device, or memory of another device without peer access
  wrong_device,
  pinned_reuse,      ///< the host changed pinned memory that a copy has yet to read or write
  pinned_free,       ///< pinned memory freed or unregistered while a copy still uses it
  early_read,        ///< host_read of memory that a copy has yet to fill
  destroyed_handle,  ///< a stream or event that was destroyed or never created
  host_access,       ///< host code in a kernel's file reads or writes device memory
  kernel,            ///< a finding inside a kernel, or an exception that left it
};
/// `race`, `use after free`, …
[[nodiscard]] const char* to_string(ReportKind kind) noexcept;

/// One finding. `text` is complete: it says what happened and names the calls with files and lines.
struct Report {
  ReportKind kind;
  std::string text;
  /// base name of the file of the call at fault (the later one of a pair)
  std::string file;
  int line = 0;
  /// the other call of a pair: the earlier access, the free, or the destroy; empty if there is none
  std::string other_file;
  int other_line = 0;
  int device = 0;
};

/// What a report causes.
///   sticky   (default) A finding in an operation that runs (a race, freed memory, changed pinned
///            memory, a finding in a kernel) also poisons the device of the operation. Every later
///            call there returns cudaErrorIllegalAddress if the memory was not the operation's to
///            access, otherwise cudaErrorLaunchFailure. A finding in the call itself (out of
///            bounds, wrong kind, wrong device, destroyed handle, double free) makes the call
///            return CUDA's documented code and has no effect on the device.
///   collect  Findings in operations are only recorded; the operation still runs if that is safe.
///            Findings in calls return their code as above, except for pinned memory that is freed
///            or read too early, which returns cudaSuccess.
/// BRAID_SIMT_REPORTS=sticky|collect.
enum class ReportMode : std::uint8_t { sticky, collect };
void set_report_mode(ReportMode mode);

/// Describes what is wrong with a BRAID_SIMT_* variable; empty if nothing is. If a variable is
/// wrong, there are no devices: every runtime call returns cudaErrorInitializationError, and the
/// engine's first use of its devices throws ArgumentError with this text.
[[nodiscard]] std::string environment_error();

/// Runs all queued operations, then returns all reports since the last take_reports.
[[nodiscard]] std::vector<Report> reports();
/// As reports, and clears them.
std::vector<Report> take_reports();
/// Returns the text of the latest report, or an empty string. Runs nothing.
[[nodiscard]] std::string last_report();
/// As last_report, but only if the report was made during the calling thread's latest runtime call.
[[nodiscard]] std::string report_of_call();
/// Returns the report that ended a device. Empty if the device works, or was lost for another
/// reason.
[[nodiscard]] std::string report_of_loss(int device);

/// The order in which the executor runs the operations that are ready: the oldest first, the newest
/// first, or in a random order given by a seed. BRAID_SIMT_STREAM_ORDER=fifo|reverse|random[:seed].
enum class StreamOrder : std::uint8_t { fifo, reverse, random };
void set_stream_order(StreamOrder order, std::uint64_t seed = 1);
/// Parses text as in the environment variable. Throws braid::ArgumentError if it is not an order.
void set_stream_order(std::string_view text);
/// Returns a hash of the order in which operations have run since the stream order was set. A
/// different order gives a different value, barring collisions.
[[nodiscard]] std::uint64_t schedule();
/// Sets how many operations may wait in all queues before the executor runs some without being
/// asked (default 1024; 0: everything runs in its call).
void set_queue_limit(std::size_t operations);
/// Sets the number of devices (BRAID_SIMT_DEVICES, default 2) and the bytes of each
/// (BRAID_SIMT_MEMORY, default 8 GiB; suffixes K, M, G; `64M:32M`: 64 MiB for the first device and
/// 32 MiB for all others). Throws braid::ArgumentError if anything is alive on any device; reset()
/// leaves nothing alive.
void set_devices(int count, std::size_t memory_bytes);
/// Sets what cudaDeviceCanAccessPeer returns between devices (default yes).
void set_peer_access_supported(bool supported);
/// Makes every copy between two devices corrupt one byte, as on machines whose bus between the GPUs
/// is misconfigured (default no).
void set_peer_copies_wrong(bool wrong);
/// Frees everything, and clears sticky errors, reports, logs, injections and counts. The current
/// device of the calling thread becomes 0.
void reset();

/// The k-th runtime call from now (1 is the next one) returns `code`, once, or from then on if
/// `persistent`. `function` counts only calls of that name ("cudaMalloc"; a launch is
/// "cudaLaunchKernel"). The call has no effect, except that destroy and free calls still do their
/// work, as CUDA's do when they return the error of an earlier call. A sticky code also poisons the
/// current device. Replaces the previous injection; k = 0 only removes it.
/// BRAID_SIMT_FAIL=k:code[:persistent][:function], with the code as a number or a name.
void fail_call(std::uint64_t k, cudaError_t code, bool persistent = false,
               std::string function = {});
/// Parses text as in the environment variable. Throws braid::ArgumentError if it is not an
/// injection.
void fail_call(std::string_view text);
/// Returns the number of runtime calls since the start or reset(). fail_call counts these calls.
[[nodiscard]] std::uint64_t calls();
/// As calls(), for one name ("cudaStreamSynchronize"; a launch is "cudaLaunchKernel").
[[nodiscard]] std::uint64_t calls(std::string_view function);
/// Returns the number of operations queued on legacy default streams since the start or reset().
/// Such an operation waits for the other streams of its device, and they wait for it.
[[nodiscard]] std::uint64_t legacy_operations();
/// Returns true if the injected failure was returned at least once.
[[nodiscard]] bool failed_call();
/// Returns the function that failed last by injection; empty before the first failure.
[[nodiscard]] std::string failed_function();
/// Returns true for the codes that end a device: they stay until cudaDeviceReset.
[[nodiscard]] bool sticky(cudaError_t code) noexcept;

/// A launch, with the sizes that the caller passed.
struct LaunchRecord {
  std::string kernel;
  int device;
  dim3 grid, block;
};
/// Returns the last 65536 launches since the start or clear_launch_log.
[[nodiscard]] std::vector<LaunchRecord> launch_log();
void clear_launch_log();

/// An object that was created and not destroyed:
/// `device memory, 1024 bytes on cuda:0, from cudaMalloc at file:line`.
struct LiveObject {
  std::string
      what;  ///< "stream", "event", "graph", "graph instance", "device memory" or "pinned memory"
  std::string text;
  int device;  ///< -1 for graphs
};
[[nodiscard]] std::vector<LiveObject> live_objects();

/// Call these when a sub-allocator allocates or frees a part of an allocation. They take effect in
/// the order of the stream, as cudaMallocAsync and cudaFreeAsync do. A use on another stream is
/// reported unless it is ordered after the allocation and before the free. A new segment counts as
/// allocated; its owner frees it first.
void annotate_allocated(void* p, std::size_t bytes, cudaStream_t stream,
                        Location where = Location::current());
void annotate_freed(void* p, std::size_t bytes, cudaStream_t stream,
                    Location where = Location::current());
/// Call it before the host reads [p, p + bytes). Reports a finding and returns false if a copy that
/// writes to this memory is not known to be complete.
bool host_read(const void* p, std::size_t bytes, Location where = Location::current());

namespace detail {

/// Queues a kernel; see simt::launch. Returns cudaErrorInvalidResourceHandle if the stream belongs
/// to a device other than the current one.
cudaError_t enqueue_launch(const Launch& launch, cudaStream_t stream,
                           std::unique_ptr<Closure> closure);

}  // namespace detail
}  // namespace braid::simt
