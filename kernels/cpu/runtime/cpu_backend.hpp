#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/caching_allocator.hpp>

#include "cpu/runtime/cpu_stream.hpp"
#include "cpu/runtime/pinning.hpp"
#include "cpu/runtime/pool.hpp"

namespace braid::cpu {

/// One logical CPU device with separate memory accounting, threads and stream.
class CpuDevice final : public DeviceBackend {
 public:
  CpuDevice(int index, const Pinning& pinning);
  [[nodiscard]] std::string description() const override;
  Block allocate(std::size_t bytes, Stream& stream) override;
  void release(const Block& block, Stream& stream) noexcept override;
  void release_after(const Block& block, Stream& stream,
                     std::span<const std::shared_ptr<Stream>>) noexcept override {
    release(block, stream);  // the work of the CPU's streams is done when their calls return
  }
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  [[nodiscard]] Stream& default_stream() noexcept override { return stream_; }
  void copy(const CopyDesc& copy, Stream& stream) override;
  [[nodiscard]] bool host_memory() const noexcept override { return true; }
  [[nodiscard]] MemoryStats memory_stats() const override { return allocator_.stats(); }
  void reset_peak_memory() override { allocator_.reset_peak(); }
  void set_memory_capacity(std::size_t bytes) override { allocator_.set_capacity(bytes); }
  void empty_cache() override { allocator_.empty_cache(); }
  void fail_allocation(std::uint64_t k, bool persistent) override {
    allocator_.fail_allocation(k, persistent);
  }
  [[nodiscard]] const KernelTable& kernels() const noexcept override { return kernels_; }

 private:
  Device device_;
  const KernelTable& kernels_;
  CachingAllocator allocator_;
  Pool pool_;
  CpuStream stream_;
};

/// The CPU as 1 to 64 logical devices.
class CpuBackend final : public Backend {
 public:
  /// Throws DeviceError if BRAID_ISA or BRAID_PIN has an invalid value, or if the processor lacks
  /// the instruction set.
  explicit CpuBackend(int devices);
  [[nodiscard]] DeviceType type() const noexcept override { return DeviceType::cpu; }
  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] int device_count() const noexcept override {
    return static_cast<int>(devices_.size());
  }
  [[nodiscard]] DeviceBackend& device(int index) override {
    return *devices_[static_cast<std::size_t>(index)];
  }

 private:
  Pinning pinning_;
  std::vector<std::unique_ptr<CpuDevice>> devices_;
};

}  // namespace braid::cpu
