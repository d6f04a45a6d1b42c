#include "cuda/runtime/device_errors.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/graph.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kMostDevices = 256;

struct Records {
  std::mutex mutex;  // held while a record is created
  std::array<std::atomic<DeviceErrorRecord*>, kMostDevices> of{};
};
// Lives as long as the process: kernels may be running while static objects are destroyed.
Records& records() {
  static auto& all = *new Records;
  return all;
}

std::atomic<DeviceErrorRecord*>& slot(Device device) {
  return records().of.at(static_cast<std::size_t>(device.index()));
}

}  // namespace

DeviceErrorRecord* device_error_record(Stream& stream) {
  std::atomic<DeviceErrorRecord*>& record = slot(stream.device());
  if (DeviceErrorRecord* found = record.load(std::memory_order_acquire)) return found;
  const std::lock_guard lock(records().mutex);
  if (DeviceErrorRecord* found = record.load(std::memory_order_acquire)) return found;
  Gpu& gpu = static_cast<CudaStream&>(stream).gpu();
  const DeviceGuard guard(gpu, stream.device());
  const RelaxedCapture relaxed(static_cast<CudaStream&>(stream).graph() != nullptr);
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(DeviceErrorRecord), cudaHostAllocPortable), "cudaHostAlloc",
        gpu, stream.device());
  auto* made = new (memory) DeviceErrorRecord{};
  record.store(made, std::memory_order_release);
  return made;
}

void throw_device_error(Device device) {
  DeviceErrorRecord* const record = slot(device).load(std::memory_order_acquire);
  if (record == nullptr) return;
  std::atomic_ref<unsigned long long> state(record->state);
  if (state.load(std::memory_order_acquire) != 2) return;
  const DeviceErrorRecord error = *record;
  unsigned long long complete = 2;
  if (!state.compare_exchange_strong(complete, 0)) return;  // another thread throws it
  const auto text = [](unsigned long long address) {
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(address));
  };
  const auto number = [](unsigned long long bits) { return static_cast<long long>(bits); };
  if (static_cast<DeviceFault>(error.fault) == DeviceFault::division)
    throw ArgumentError(str(text(error.op), ": expected integer divisors other than 0, got 0"));
  throw IndexError(str(text(error.op), ": expected ", text(error.what), " in [", number(error.low),
                       ", ", number(error.high), "), got ", number(error.got), " at position ",
                       number(error.position)));
}

}  // namespace braid::cuda
