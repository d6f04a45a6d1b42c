#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/kernel_table.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/stream.hpp>

// The device seam: memory, queues, events, copies and a table of kernels. Nothing else crosses it,
// and no CUDA header is included here or above.
namespace braid {

/// Memory handed out by a device. `tag` is the allocator's own.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t tag = 0;
};

/// A flat copy of bytes between the host and devices, or between devices. At least one side is on
/// the backend's device.
struct CopyDesc {
  void* to;
  Device to_device;
  const void* from;
  Device from_device;
  std::size_t bytes;
};

/// One logical device.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  [[nodiscard]] virtual std::string description() const = 0;
  /// Stream-ordered, 64-byte aligned at least. bytes > 0. Throws OutOfMemoryError.
  virtual Block allocate(std::size_t bytes, Stream& stream) = 0;
  virtual void release(const Block& block, Stream& stream) noexcept = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  [[nodiscard]] virtual Stream& default_stream() noexcept = 0;
  /// Queued on `stream`. Between devices it is ordered after, and before, the work of the other
  /// device's current stream too. A copy from the host has read its source, and a copy to the host
  /// is done, when the call returns.
  virtual void copy(const CopyDesc& copy, Stream& stream) = 0;
  /// the host may read its memory directly
  [[nodiscard]] virtual bool host_memory() const noexcept = 0;
  [[nodiscard]] virtual MemoryStats memory_stats() const = 0;
  virtual void reset_peak_memory() = 0;
  virtual void set_memory_capacity(std::size_t bytes) = 0;
  virtual void empty_cache() = 0;
  virtual void fail_allocation(std::uint64_t k, bool persistent) = 0;
  [[nodiscard]] virtual const KernelTable& kernels() const noexcept = 0;
  /// The calling thread is the library's own and works for devices alone: no other code on it asks
  /// which GPU is current.
  virtual void own_thread() noexcept {}
};

/// One kind of device.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceType type() const noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// a broken driver means 0, never a throw
  [[nodiscard]] virtual int device_count() const noexcept = 0;
  [[nodiscard]] virtual DeviceBackend& device(int index) = 0;  ///< 0 <= index < device_count()
};

/// The explicit list. Declared here, defined by braid::kernels; called once, at the first use of a
/// device, with the CPU device count that was asked for.
std::vector<std::unique_ptr<Backend>> built_in_backends(int cpu_devices);

/// What an op needs of a device, found without a lock after the first use.
struct DeviceContext {
  DeviceBackend* backend = nullptr;
  const KernelTable* kernels = nullptr;
  Stream* stream = nullptr;  // the device's default stream
  bool host_memory = false;
};
/// Throws DeviceError for a device that does not exist:
/// `device: expected one of cpu:0, cpu:1, got cpu:7`.
[[nodiscard]] const DeviceContext& device_context(Device device);

namespace detail {
[[noreturn]] void no_kernel(const char* op, Device device);
/// The OutOfMemoryError of an op that found no memory on the host for its own work.
[[noreturn]] void no_host_memory(const char* op, Device device);
}  // namespace detail

/// Runs a kernel of the device's table on its current stream: launch("softmax", device,
/// &KernelTable::softmax, args). Throws OutOfMemoryError where the kernel finds no memory for its
/// own work.
template <class Args>
void launch(const char* op, Device device, void (*KernelTable::*kernel)(const Args&, Stream&),
            const Args& args) {
  const DeviceContext& context = device_context(device);
  const auto function = context.kernels->*kernel;
  if (!function) detail::no_kernel(op, device);
  try {
    function(args, current_stream(device));
  } catch (const std::bad_alloc&) {
    detail::no_host_memory(op, device);
  }
}

}  // namespace braid
