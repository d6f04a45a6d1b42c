#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include <braid/core/error.hpp>

#include "simt/config.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/error_names.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt {
namespace detail {
namespace {

constexpr std::size_t kDefaultMemory = std::size_t{8} << 30;
constexpr int kDefaultDevices = 2, kMostDevices = 64;

[[noreturn]] void bad(const char* name, std::string_view expected, std::string_view got) {
  throw ArgumentError(str(name, ": expected ", expected, ", got '", got, "'"));
}

std::uint64_t number(const char* name, std::string_view text, std::string_view expected,
                     std::string_view whole) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) bad(name, expected, whole);
  return value;
}

std::size_t bytes_of(const char* name, std::string_view text) {
  const std::string_view whole = text;
  int shift = 0;
  if (!text.empty()) switch (text.back()) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      default: break;
    }
  if (shift) text.remove_suffix(1);
  constexpr const char* kForm = "bytes, or a number with K, M or G";
  const std::uint64_t value = number(name, text, kForm, whole);
  if (value > std::numeric_limits<std::size_t>::max() >> shift)
    bad(name, "bytes that fit 64 bits", whole);
  return static_cast<std::size_t>(value) << shift;
}

// Splits `a:b:c` at the colons.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    list.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

void add_devices(Runtime& r, int count, std::size_t memory) {
  for (int i = 0; i < count; ++i) {
    DeviceState device;
    device.capacity = memory;
    device.legacy = std::make_shared<StreamState>();
    device.legacy->device = static_cast<int>(r.devices.size()), device.legacy->legacy = true,
    device.legacy->of_user = false;
    device.legacy->slot = static_cast<std::uint32_t>(r.ticks.size());
    r.ticks.push_back(0);
    r.devices.push_back(std::move(device));
  }
}

constexpr const char *kFail = "BRAID_SIMT_FAIL", *kOrder = "BRAID_SIMT_STREAM_ORDER";

Runtime::Injection parse_injection(std::string_view text) {
  constexpr std::string_view kForm = "k:code[:persistent][:function]";
  const auto list = parts(text);
  if (list.size() < 2 || list.size() > 4) bad(kFail, kForm, text);
  Runtime::Injection injection;
  injection.k = number(kFail, list[0], kForm, text);
  if (!find_error(list[1], injection.code))
    bad(kFail, "the name or number of a CUDA error", list[1]);
  for (std::size_t i = 2; i < list.size(); ++i) {
    if (list[i] == "persistent") injection.persistent = true;
    else injection.function = list[i];
  }
  return injection;
}

std::pair<StreamOrder, std::uint64_t> parse_order(std::string_view text) {
  constexpr std::string_view kForm = "fifo, reverse or random[:seed]";
  if (text == "fifo") return {StreamOrder::fifo, 1};
  if (text == "reverse") return {StreamOrder::reverse, 1};
  const auto list = parts(text);
  if (list[0] != "random" || list.size() > 2) bad(kOrder, kForm, text);
  return {StreamOrder::random, list.size() == 2 ? number(kOrder, list[1], kForm, text) : 1};
}

}  // namespace

Runtime::Runtime() {
  ticks.push_back(0);  // the host
  try {
    (void)config();  // checks the variables of kernels
    read_environment();
  } catch (const braid::Error& e) {
    // runtime calls do not throw; the engine does, see environment_error
    environment_error = e.what();
    devices.clear();
  }
}

void Runtime::read_environment() {
  const auto env = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  std::uint64_t count = kDefaultDevices;
  if (const auto text = env("BRAID_SIMT_DEVICES"); !text.empty())
    count = number("BRAID_SIMT_DEVICES", text, "a number of devices", text);
  if (count > kMostDevices)
    bad("BRAID_SIMT_DEVICES", str("at most ", kMostDevices), std::to_string(count));
  // of each device; the last value applies to all that follow
  std::vector<std::size_t> memory{kDefaultMemory};
  if (const auto text = env("BRAID_SIMT_MEMORY"); !text.empty()) {
    memory.clear();
    for (const std::string_view part : parts(text))
      memory.push_back(bytes_of("BRAID_SIMT_MEMORY", part));
  }
  if (const auto text = env(kOrder); !text.empty()) {
    const auto [chosen, seed] = parse_order(text);
    order = chosen;
    random.seed(seed);
  }
  if (const auto text = env("BRAID_SIMT_REPORTS"); text == "collect") mode = ReportMode::collect;
  else if (!text.empty() && text != "sticky") bad("BRAID_SIMT_REPORTS", "sticky or collect", text);
  if (const auto text = env(kFail); !text.empty()) injection = parse_injection(text);
  for (std::size_t i = 0; i < count; ++i)
    add_devices(*this, 1, memory[std::min(i, memory.size() - 1)]);
}

Runtime& runtime() {
  static Runtime* const the_one = new Runtime;
  return *the_one;
}

void Runtime::clear() {
  run_all();
  std::vector<AllocationPtr> all;
  const Lock runs(baton);
  {
    const Lock lock(mutex);
    for (const auto& [address, allocation] : allocations) all.push_back(allocation);
    allocations.clear(), quarantine.clear(), watches.clear(), found.clear(), reported.clear(),
        log.clear();
    quarantine_bytes = 0, gone.clear(), gone_order.clear(), gone_bytes = 0, last_text.clear(),
    injection = {}, call_count = legacy_count = 0;
    calls_of.clear();
    // The host now knows everything: earlier operations are ordered before all later ones.
    for (std::uint32_t slot = 0; slot < ticks.size(); ++slot) host.set(slot, ticks[slot]);
    for (const auto& [handle, stream] : streams) stream->alive = false;
    per_thread.clear();
    for (const auto& [handle, event] : events) keep_dead(dead_events, handle, {event->created, {}});
    events.clear();
    sweep_streams();
    learn(host);
    ops.clear();
    first_op = next_op;
    for (DeviceState& device : devices)
      device.used = device.peak = 0, device.release_threshold = 0, device.sticky = cudaSuccess,
      device.reason.clear(), device.legacy->last = nullptr;
  }
  for (const AllocationPtr& allocation : all)
    if (!allocation->unregistered) unregister_memory(allocation->base);
  for (std::size_t device = 0; device < devices.size(); ++device)
    for (const int peer : std::exchange(devices[device].peers, {}))
      set_peer_access(static_cast<int>(device), peer, false);
}

}  // namespace detail

void reset() {
  detail::runtime().clear();
  detail::current_device = 0;
  detail::last_error = cudaSuccess;
}

std::string environment_error() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.environment_error;
}

void set_stream_order(StreamOrder order, std::uint64_t seed) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.order = order;
  r.random.seed(seed);
  r.schedule = 0;
}

std::uint64_t schedule() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.schedule;
}

void set_stream_order(std::string_view text) {
  const auto [order, seed] = detail::parse_order(text);
  set_stream_order(order, seed);
}

void fail_call(std::string_view text) {
  const auto i = detail::parse_injection(text);
  fail_call(i.k, i.code, i.persistent, i.function);
}

void set_queue_limit(std::size_t operations) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.queue_limit = operations;
}

void set_peer_access_supported(bool supported) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.peer_supported = supported;
}

void set_peer_copies_wrong(bool wrong) { detail::runtime().peer_wrong = wrong; }

void set_devices(int count, std::size_t memory_bytes) {
  if (count < 0 || count > detail::kMostDevices)
    throw ArgumentError(
        str("set_devices: count: expected 0 to ", detail::kMostDevices, ", got ", count));
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  for (const auto& [address, allocation] : r.allocations)
    if (!allocation->freed)
      throw ArgumentError("set_devices: expected nothing alive on any device, got memory from " +
                          std::string(allocation->call));
  if (!r.streams.empty() || !r.events.empty() || r.pending)
    throw ArgumentError("set_devices: expected nothing alive on any device, got streams or events");
  r.devices.clear(), r.environment_error.clear();
  detail::add_devices(r, count, memory_bytes);
  detail::current_device = 0;
}

std::vector<LiveObject> live_objects() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  std::vector<LiveObject> list;
  for (const auto& [address, a] : r.allocations) {
    if (a->freed) continue;
    const char* what = a->place == detail::Place::device ? "device memory" : "pinned memory";
    list.push_back({what,
                    str(what, ", ", a->bytes, " bytes on cuda:", a->device, ", from ", a->call,
                        " at ", detail::describe(a->where)),
                    a->device});
  }
  for (const auto& [number, s] : r.streams)
    if (s->alive && s->of_user)
      list.push_back(
          {"stream",
           str("stream of cuda:", s->device, ", created at ", detail::describe(s->created)),
           s->device});
  for (const auto& [number, e] : r.events)
    list.push_back({"event",
                    str("event of cuda:", e->device, ", created at ", detail::describe(e->created)),
                    e->device});
  return list;
}

namespace {

void annotate(const char* call, bool give, void* p, std::size_t bytes, cudaStream_t handle,
              Location where) {
  using detail::Runtime;
  Runtime& r = detail::runtime();
  {
    const Runtime::Lock lock(r.mutex);
    if (r.devices.empty()) return;
    const auto stream = r.find_stream(handle, call, where);
    const detail::AllocationPtr allocation = r.find_allocation(p);
    if (!stream || r.sticky_of(stream->device) != cudaSuccess) return;
    if (!allocation || allocation->freed ||
        static_cast<std::size_t>(static_cast<char*>(p) - allocation->base) + bytes >
            allocation->bytes) {
      r.report(ReportKind::out_of_bounds, stream->device, where, {},
               str(call, " at ", detail::describe(where),
                   ": expected part of an allocation, got other memory"));
      return;
    }
    r.enqueue(*stream, give ? detail::OpKind::allocate : detail::OpKind::free, call, where,
              [&r, allocation, p, bytes, give](detail::Op& op) {
                bool fine = false;
                {
                  const Runtime::Lock runs(r.mutex);
                  fine = r.touch(op.shared_from_this(), allocation, p, bytes,
                                 give ? detail::Access::allocate : detail::Access::free);
                }
                if (give) {
                  std::memset(p, 0xff, bytes);
                  r.tell_allocated(op, p, bytes);
                  return;
                }
                constexpr ReportKind kind = ReportKind::use_after_free;
                const auto question = [&] { detail::check_block(p, bytes); };
                if (fine) r.ask_checker(op, question, &kind);
                annotate_freed(p, bytes);
              });
  }
  r.settle();
}

}  // namespace

void annotate_allocated(void* p, std::size_t bytes, cudaStream_t stream, Location where) {
  annotate("annotate_allocated", true, p, bytes, stream, where);
}
void annotate_freed(void* p, std::size_t bytes, cudaStream_t stream, Location where) {
  annotate("annotate_freed", false, p, bytes, stream, where);
}

}  // namespace braid::simt
