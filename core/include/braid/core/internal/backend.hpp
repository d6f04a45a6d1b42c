#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/internal/kernel_table.hpp>
#include <braid/core/internal/multiply_adds.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/stream.hpp>

// The device interface: memory, queues, events, copies and a table of kernels. Code above this
// interface uses devices only through it and its optional extensions DeviceClock and NativeDevice.
// No CUDA header is included here or above.
namespace braid {

/// A block of a device's memory. `tag` belongs to the allocator.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t tag = 0;
};

/// A copy of contiguous bytes between the host and a device, or between devices. At least one side
/// is on the backend's device.
struct CopyDesc {
  void* to;
  Device to_device;
  const void* from;
  Device from_device;
  std::size_t bytes;
  /// from pinned memory: the copy may read it after the call has returned
  bool non_blocking = false;
};

namespace detail {
class StepRecorder;  // step_capture.hpp
}

/// One logical device.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  [[nodiscard]] virtual std::string description() const = 0;
  /// Allocates bytes > 0, in stream order, aligned to at least 64 bytes. Throws OutOfMemoryError.
  virtual Block allocate(std::size_t bytes, Stream& stream) = 0;
  virtual void release(const Block& block, Stream& stream) noexcept = 0;
  /// The same for a block that other streams of the device use too: it may be reused after the work
  /// that is queued on `users` so far.
  virtual void release_after(const Block& block, Stream& stream,
                             std::span<const std::shared_ptr<Stream>> users) noexcept = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  [[nodiscard]] virtual Stream& default_stream() noexcept = 0;
  /// The stream for copies from the host into new memory: they overlap the work of other streams.
  /// Null if the device has none, as the CPU.
  [[nodiscard]] virtual std::shared_ptr<Stream> upload_stream() { return nullptr; }
  /// Queues a copy on `stream`. A copy between devices is also ordered after the earlier work, and
  /// before the later work, of the other device's current stream. When the call returns, a copy
  /// from the host has read its source (unless non_blocking), and a copy to the host is complete.
  virtual void copy(const CopyDesc& copy, Stream& stream) = 0;
  /// True if the host may read the device's memory directly.
  [[nodiscard]] virtual bool host_memory() const noexcept = 0;
  [[nodiscard]] virtual MemoryStats memory_stats() const = 0;
  virtual void reset_peak_memory() = 0;
  virtual void set_memory_capacity(std::size_t bytes) = 0;
  virtual void empty_cache() = 0;
  virtual void fail_allocation(std::uint64_t k, bool persistent) = 0;
  [[nodiscard]] virtual const KernelTable& kernels() const noexcept = 0;
  /// Returns what records a step for replays; null if the device cannot, as the CPU.
  [[nodiscard]] virtual std::unique_ptr<detail::StepRecorder> make_recorder();
  /// Tells the backend that the calling thread belongs to the library and works only for devices:
  /// no other code on this thread depends on which GPU is current.
  virtual void own_thread() noexcept {}
};

/// Page-locked memory of the host, for copies that a device makes without the processor.
/// Thread-safe.
class PinnedAllocator {
 public:
  virtual ~PinnedAllocator() = default;
  /// Allocates bytes > 0, aligned to at least 64 bytes. Throws OutOfMemoryError, CudaError,
  /// DeviceLostError.
  virtual Block allocate(std::size_t bytes) = 0;
  /// The block is reused after the queued copies that read it.
  virtual void release(const Block& block) noexcept = 0;
};

/// One kind of device.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceType type() const noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Returns 0 for a broken driver; never throws.
  [[nodiscard]] virtual int device_count() const noexcept = 0;
  [[nodiscard]] virtual DeviceBackend& device(int index) = 0;  ///< 0 <= index < device_count()
  /// Null if it has none, or no device.
  [[nodiscard]] virtual PinnedAllocator* pinned_allocator() noexcept { return nullptr; }
};

/// The list of all backends. Declared here, defined by braid::kernels. Called once, at the first
/// use of a device, with the requested number of CPU devices.
std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices);

/// What an op needs to know about a device. After the first use it is found without a lock.
struct DeviceContext {
  DeviceBackend* backend = nullptr;
  const KernelTable* kernels = nullptr;
  Stream* stream = nullptr;  // the device's default stream
  bool host_memory = false;
};
/// Throws DeviceError for a device that does not exist:
/// `device: expected one of cpu:0, cpu:1, got cpu:7`.
[[nodiscard]] const DeviceContext& device_context(Device device);
/// The allocator of pinned memory; null if there is no CUDA device.
[[nodiscard]] PinnedAllocator* pinned_allocator();
/// The same for the memory of a tensor on `device`. Throws DeviceError unless that is a CPU device,
/// and if there is no CUDA device.
PinnedAllocator& pinned_allocator_for(const char* op, Device device);

namespace detail {
[[noreturn]] void no_kernel(const char* op, Device device);
/// Throws the OutOfMemoryError of an op that could not allocate host memory for its own work.
[[noreturn]] void no_host_memory(const char* op, Device device);
}  // namespace detail

/// Runs a kernel of the device's table on the current stream: launch("softmax", device,
/// &KernelTable::softmax, args). Throws DeviceError if the backend does not have the kernel,
/// OutOfMemoryError if the kernel cannot allocate memory for its own work.
template <class Args>
void launch(const char* op, Device device, void (*KernelTable::*kernel)(const Args&, Stream&),
            const Args& args) {
  const DeviceContext& context = device_context(device);
  const auto function = context.kernels->*kernel;
  if (!function) detail::no_kernel(op, device);
  if constexpr (requires { multiply_adds_of(args); }) {
    if (std::atomic<std::int64_t>* const count = thread_state().multiply_adds) [[unlikely]]
      count->fetch_add(multiply_adds_of(args), std::memory_order_relaxed);
  }
  try {
    function(args, current_stream(device));
  } catch (const std::bad_alloc&) {
    detail::no_host_memory(op, device);
  }
}

}  // namespace braid
