// The devices of this process. They are detected at the first use, and fixed from then on.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>

namespace braid {
namespace {

constexpr int kMaxDevices = 64;  // per device type
constexpr int kMaxThreads = 256;

struct Registry {
  std::vector<std::unique_ptr<Backend>> backends;
  int count[2] = {0, 0};
  DeviceContext contexts[2][kMaxDevices];
  Device best;
};

std::mutex registry_mutex;
std::atomic<Registry*> registry_pointer{nullptr};  // never deleted: tensors may outlive main()
// set by set_cpu_device_count; protected by registry_mutex
int requested_cpu_devices = 0;
std::atomic<int> requested_threads{0};
// What set_default_device has set: the device's type times 2^16 plus its index. An atomic Device
// would need libatomic where the compiler does not see its alignment.
std::atomic<std::int32_t> default_of_factories{0};  // cpu:0

std::optional<int> env_int(const char* name, int low, int high) {
  const char* text = std::getenv(name);
  if (!text || !*text) return {};
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < low || value > high)
    throw DeviceError(str(name, ": expected a number from ", low, " to ", high, ", got '",
                          view.substr(0, 64), "'"));
  return value;
}

Registry* make_registry() {
  const std::lock_guard lock(registry_mutex);
  if (Registry* r = registry_pointer.load(std::memory_order_acquire)) return r;
  auto r = std::make_unique<Registry>();
  const int cpus = requested_cpu_devices ? requested_cpu_devices
                                         : env_int("BRAID_CPU_DEVICES", 1, kMaxDevices).value_or(1);
  // checked here, so that a wrong value fails at the first use of a device, not in a later kernel
  (void)env_int("BRAID_THREADS", 1, kMaxThreads);
  r->backends = built_in_backends(cpus);
  for (const auto& backend : r->backends) {
    const auto type = static_cast<int>(backend->type());
    const int n = backend->device_count();
    if (n > kMaxDevices)
      throw DeviceError(
          str(backend->name(), ": expected at most ", kMaxDevices, " devices, got ", n));
    r->count[type] = n;
    for (int i = 0; i < n; ++i) {
      DeviceBackend& device = backend->device(i);
      r->contexts[type][i] = {&device, &device.kernels(), &device.default_stream(),
                              device.host_memory()};
    }
  }
  r->best = r->count[1] > 0 ? Device(DeviceType::cuda, 0) : Device(DeviceType::cpu, 0);
  if (const char* name = std::getenv("BRAID_DEVICE"); name && *name) {
    const Device asked(name);
    if (asked.index() >= r->count[static_cast<int>(asked.type())])
      throw DeviceError(str("BRAID_DEVICE: expected a device that exists, got ", asked));
    r->best = asked;
  }
  registry_pointer.store(r.get(), std::memory_order_release);
  return r.release();
}

Registry& registry() {
  Registry* r = registry_pointer.load(std::memory_order_acquire);
  return r ? *r : *make_registry();
}

[[noreturn]] void unknown_device(const Registry& r, Device device) {
  std::string known;
  for (int type = 0; type < 2; ++type)
    for (int i = 0; i < r.count[type]; ++i)
      known += str(known.empty() ? "" : ", ", Device(static_cast<DeviceType>(type), i));
  throw DeviceError(str("device: expected one of ", known, ", got ", device));
}

}  // namespace

const DeviceContext& device_context(Device device) {
  const Registry& r = registry();
  const auto type = static_cast<int>(device.type());
  if (device.index() < 0 || device.index() >= r.count[type]) unknown_device(r, device);
  return r.contexts[type][device.index()];
}

PinnedAllocator* pinned_allocator() {
  for (const auto& backend : registry().backends)
    if (PinnedAllocator* const allocator = backend->pinned_allocator()) return allocator;
  return nullptr;
}

PinnedAllocator& pinned_allocator_for(const char* op, Device device) {
  if (!device.is_cpu())
    throw DeviceError(str(op, ": expected a tensor of a CPU device, got one on ", device));
  (void)device_context(device);  // checks that it exists
  PinnedAllocator* const allocator = pinned_allocator();
  if (allocator == nullptr)
    throw DeviceError(
        str(op, ": expected a CUDA device, whose driver pins memory of the host, got none"));
  return *allocator;
}

Stream& current_stream(Device device) {
  const ThreadState& state = thread_state();
  const StreamGuard* guard = state.streams;
  while (guard != nullptr && guard->stream()->device() != device) guard = guard->outer();
  Stream& stream = guard != nullptr ? *guard->stream() : *device_context(device).stream;
  if (state.capture != nullptr) [[unlikely]]
    state.capture->check_stream(stream);
  return stream;
}

namespace detail {
void no_kernel(const char* op, Device device) {
  throw DeviceError(str(op, ": expected a device with a kernel for it, got ", device));
}
void no_host_memory(const char* op, Device device) {
  const MemoryStats m = memory_stats(device);
  throw OutOfMemoryError(device, 0, m.in_use, m.cached, m.capacity,
                         str("no memory on the host for the work of ", op));
}
}  // namespace detail

Device best_device() { return registry().best; }
int device_count(DeviceType type) { return registry().count[static_cast<int>(type)]; }
int device_count() { return device_count(best_device().type()); }
std::vector<Device> devices(DeviceType type) {
  std::vector<Device> list;
  for (int i = 0; i < device_count(type); ++i) list.emplace_back(type, i);
  return list;
}
std::vector<Device> devices() { return devices(best_device().type()); }

void set_default_device(Device device) {
  (void)device_context(device);  // checks that it exists
  default_of_factories.store((static_cast<std::int32_t>(device.type()) << 16) | device.index(),
                             std::memory_order_relaxed);
}
Device get_default_device() noexcept {
  if (const std::optional<Device>& guarded = thread_state().default_device) return *guarded;
  const std::int32_t packed = default_of_factories.load(std::memory_order_relaxed);
  return {static_cast<DeviceType>(packed >> 16), packed & 0xffff};
}
DefaultDeviceGuard::DefaultDeviceGuard(Device device) : before_(thread_state().default_device) {
  (void)device_context(device);  // checks that it exists
  thread_state().default_device = device;
}
DefaultDeviceGuard::~DefaultDeviceGuard() { thread_state().default_device = before_; }

void set_cpu_device_count(int count) {
  const std::lock_guard lock(registry_mutex);
  if (count < 1 || count > kMaxDevices)
    throw DeviceError(
        str("set_cpu_device_count: expected a number from 1 to ", kMaxDevices, ", got ", count));
  if (const Registry* r = registry_pointer.load(std::memory_order_acquire))
    throw DeviceError(
        str("set_cpu_device_count: expected a call before the first use of a device, got ", count,
            " with ", r->count[0], " CPU devices in use"));
  requested_cpu_devices = count;
}

int num_threads() {
  if (const int n = requested_threads.load(std::memory_order_relaxed)) return n;
  // counts only the cores of the affinity mask
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int n = env_int("BRAID_THREADS", 1, kMaxThreads)
                    .value_or(std::max(1, cores / device_count(DeviceType::cpu)));
  int expected = 0;
  requested_threads.compare_exchange_strong(expected, n);
  return requested_threads.load(std::memory_order_relaxed);
}

void set_num_threads(int count) {
  if (count < 1 || count > kMaxThreads)
    throw ArgumentError(
        str("set_num_threads: expected a number from 1 to ", kMaxThreads, ", got ", count));
  requested_threads.store(count, std::memory_order_relaxed);
}

void synchronize(Device device) {
  Stream& own = *device_context(device).stream;
  Stream& current = current_stream(device);
  if (&current != &own) current.synchronize();
  own.synchronize();
}

MemoryStats memory_stats(Device device) { return device_context(device).backend->memory_stats(); }
void reset_peak_memory(Device device) { device_context(device).backend->reset_peak_memory(); }
void set_memory_capacity(Device device, std::size_t bytes) {
  device_context(device).backend->set_memory_capacity(bytes);
}
void empty_cache(Device device) { device_context(device).backend->empty_cache(); }
void fail_allocation(Device device, std::uint64_t k, bool persistent) {
  device_context(device).backend->fail_allocation(k, persistent);
}

}  // namespace braid
