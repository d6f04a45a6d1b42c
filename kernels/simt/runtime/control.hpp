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

/// What tests and the engine ask the host twin of the CUDA runtime beyond CUDA's own calls:
/// reports, injected failures, orders, and what is still alive. Everything here may be called from
/// any thread, but not from a host function on a stream.
namespace braid::simt {

/// What the checker of streams found. The findings of kernels come as Report too, with kind
/// `kernel`.
enum class ReportKind : std::uint8_t {
  /// two operations touch the same memory, one of them writes, and nothing orders them
  race,
  /// an operation uses memory that was freed before it, or nothing orders it with the free
  use_after_free,
  /// an operation uses memory of cudaMallocAsync that its stream does not know of yet
  use_before_alloc,
  double_free,  ///< memory freed twice
  /// a pointer freed that is not the begin of an allocation, or by the wrong function
  bad_free,
  out_of_bounds,  ///< a copy or memset past the end of its allocation
  overlap,        ///< a copy whose source and destination share bytes
  wrong_kind,     ///< a copy whose direction does not fit its pointers, a memset of host memory
  /// a stream or event of another device, memory of another device without peer access
  wrong_device,
  pinned_reuse,      ///< the host changed pinned memory that a copy was still to read or write
  pinned_free,       ///< pinned memory freed or unregistered while a copy still uses it
  early_read,        ///< host_read of memory that a copy has still to fill
  destroyed_handle,  ///< a stream or event that was destroyed, or never created
  host_access,       ///< host code in a kernel's file reads or writes device memory
  kernel,            ///< a finding inside a kernel, or an exception that left it
};
/// `race`, `use after free`, …
[[nodiscard]] const char* to_string(ReportKind kind) noexcept;

/// One finding. `text` is complete: what happened, which calls, their files and lines.
struct Report {
  ReportKind kind;
  std::string text;
  /// base name of the file of the call that is at fault (the later one of a pair)
  std::string file;
  int line = 0;
  /// the other call of a pair: the earlier access, the free, the destroy; empty if there is none
  std::string other_file;
  int other_line = 0;
  int device = 0;
};

/// What follows from a report.
///   sticky   (default) A finding in an operation that runs (a race, memory freed, pinned memory
///   changed, a kernel's finding) also poisons the device of
///            the operation: every later call there returns cudaErrorIllegalAddress (memory that is
///            not the operation's to touch), else cudaErrorLaunchFailure. A finding in the call
///            itself (out of bounds, wrong kind, wrong device, destroyed handle, double free) makes
///            the call return CUDA's documented code and has no effect on the device.
///   collect  Findings in operations are only kept; the operation still runs where that is safe.
///   Findings in calls return their code as above, except for
///            pinned memory freed or read too early, which returns cudaSuccess.
/// BRAID_SIMT_REPORTS=sticky|collect.
enum class ReportMode : std::uint8_t { sticky, collect };
void set_report_mode(ReportMode mode);

/// What is wrong with a BRAID_SIMT_* variable, or an empty string. Otherwise there are no devices:
/// every call of the runtime returns cudaErrorInitializationError, and the engine's first use of
/// its devices throws ArgumentError with this text.
[[nodiscard]] std::string environment_error();

/// All reports since the last take_reports; whatever is queued is run first.
[[nodiscard]] std::vector<Report> reports();
/// As reports, and forgets them.
std::vector<Report> take_reports();
/// The text of the latest report, or an empty string. Runs nothing.
[[nodiscard]] std::string last_report();
/// As last_report, but only if it was made during the calling thread's latest runtime call.
[[nodiscard]] std::string report_of_call();
/// The report that ended a device; empty if the device works, or ended for another reason.
[[nodiscard]] std::string report_of_loss(int device);

/// In which order the executor takes the operations that may run: the oldest first, the newest
/// first, or at random by seed. BRAID_SIMT_STREAM_ORDER=fifo|reverse|random[:seed].
enum class StreamOrder : std::uint8_t { fifo, reverse, random };
void set_stream_order(StreamOrder order, std::uint64_t seed = 1);
/// From text, as in the environment. Throws braid::ArgumentError for what is no order.
void set_stream_order(std::string_view text);
/// A number made of the order in which operations have run since the order of streams was set:
/// another one where two ran in another order.
[[nodiscard]] std::uint64_t schedule();
/// Operations that may wait in all queues before the executor runs some of its own accord (default
/// 1024; 0: everything runs in its call).
void set_queue_limit(std::size_t operations);
/// Number of devices (BRAID_SIMT_DEVICES, default 2) and bytes of each (BRAID_SIMT_MEMORY, default
/// 8 GiB; suffixes K, M, G; `64M:32M` from device to device). Only where nothing is alive on any
/// device, as reset() leaves it; throws braid::ArgumentError otherwise.
void set_devices(int count, std::size_t memory_bytes);
/// Whether cudaDeviceCanAccessPeer says yes between devices (default yes).
void set_peer_access_supported(bool supported);
/// Every copy between two devices brings one wrong byte, as on machines whose bus between GPUs is
/// set up wrongly (default no).
void set_peer_copies_wrong(bool wrong);
/// Frees everything, ends sticky errors, forgets reports, logs, injections and counts. The current
/// device of the calling thread becomes 0.
void reset();

/// The k-th runtime call from now (1 is the next one) returns `code`, once, or from then on where
/// `persistent`. `function` counts only calls of that name ("cudaMalloc"; a launch is
/// "cudaLaunchKernel"). The call has no effect, except that destroy and free calls still do their
/// work, as calls in CUDA do that return the error of an earlier one. A sticky code also poisons
/// the current device. Replaces the former injection; k = 0 only ends it.
/// BRAID_SIMT_FAIL=k:code[:persistent][:function], the code as number or name.
void fail_call(std::uint64_t k, cudaError_t code, bool persistent = false,
               std::string function = {});
/// From text, as in the environment. Throws braid::ArgumentError for what is none.
void fail_call(std::string_view text);
/// Runtime calls since the start, or since reset(): what fail_call counts.
[[nodiscard]] std::uint64_t calls();
/// Of them, those of one name ("cudaStreamSynchronize"; a launch is "cudaLaunchKernel").
[[nodiscard]] std::uint64_t calls(std::string_view function);
/// Operations that were queued on a device's legacy default stream, likewise: each waits for the
/// other streams of its device, and they for it.
[[nodiscard]] std::uint64_t legacy_operations();
/// True where the armed failure was returned at least once.
[[nodiscard]] bool failed_call();
/// The function whose call it was, the last time; empty before the first.
[[nodiscard]] std::string failed_function();
/// True for the codes that end a device: they stay until cudaDeviceReset.
[[nodiscard]] bool sticky(cudaError_t code) noexcept;

/// A launch, as it was asked for.
struct LaunchRecord {
  std::string kernel;
  int device;
  dim3 grid, block;
};
/// The last 65536 launches since the start or clear_launch_log.
[[nodiscard]] std::vector<LaunchRecord> launch_log();
void clear_launch_log();

/// Something that was created and not destroyed:
/// `device memory, 1024 bytes on cuda:0, from cudaMalloc at file:line`.
struct LiveObject {
  std::string what;  ///< "stream", "event", "device memory", "pinned memory"
  std::string text;
  int device;
};
[[nodiscard]] std::vector<LiveObject> live_objects();

/// Part of an allocation was given out, or taken back, by a sub-allocator, in the order of the
/// stream: as cudaMallocAsync and cudaFreeAsync are. Use of it on another stream without an order
/// after the first and before the second is reported. A fresh segment counts as given out; its
/// owner frees it first.
void annotate_allocated(void* p, std::size_t bytes, cudaStream_t stream,
                        Location where = Location::current());
void annotate_freed(void* p, std::size_t bytes, cudaStream_t stream,
                    Location where = Location::current());
/// The host is about to read [p, p + bytes): reported where a copy that writes it is not known to
/// be over. False if it was.
bool host_read(const void* p, std::size_t bytes, Location where = Location::current());

namespace detail {

/// Queues a kernel; see simt::launch. A stream of another than the current device is
/// cudaErrorInvalidResourceHandle.
cudaError_t enqueue_launch(const Launch& launch, cudaStream_t stream,
                           std::unique_ptr<Closure> closure);

}  // namespace detail
}  // namespace braid::simt
