#include <cstring>
#include <utility>

#include <braid/core/error.hpp>

#include "simt/config.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt {
namespace detail {

Runtime::Runtime() {
  try {
    (void)config();  // checks the variables of kernels
    read_environment();
  } catch (const braid::Error& e) {
    // runtime calls do not throw; the engine does, see environment_error
    reports.environment_error = e.what();
    remove_devices();
  }
}

void Runtime::add_device(std::size_t capacity) {
  memory.devices.emplace_back().capacity = capacity;
  reports.devices.emplace_back();
  streams.add_device();
}

void Runtime::remove_devices() {
  memory.devices.clear();
  reports.devices.clear();
  streams.legacy.clear();
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
    for (const auto& [address, allocation] : memory.allocations) all.push_back(allocation);
    memory.clear();
    reports.clear();
    injection.clear();
    captures.clear();
    streams.clear();
  }
  for (const AllocationPtr& allocation : all)
    if (!allocation->unregistered) unregister_memory(allocation->base);
  for (std::size_t device = 0; device < device_count(); ++device)
    for (const int peer : std::exchange(memory.devices[device].peers, {}))
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
  return r.reports.environment_error;
}

void set_stream_order(StreamOrder order, std::uint64_t seed) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.injection.order = order;
  r.injection.random.seed(seed);
  r.injection.schedule = 0;
}

std::uint64_t schedule() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.injection.schedule;
}

void set_queue_limit(std::size_t operations) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.streams.queue_limit = operations;
}

void set_peer_access_supported(bool supported) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.memory.peer_supported = supported;
}

void set_peer_copies_wrong(bool wrong) { detail::runtime().injection.peer_wrong = wrong; }

void set_devices(int count, std::size_t memory_bytes) {
  if (count < 0 || count > detail::kMostDevices)
    throw ArgumentError(
        str("set_devices: count: expected 0 to ", detail::kMostDevices, ", got ", count));
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  for (const auto& [address, allocation] : r.memory.allocations)
    if (!allocation->freed)
      throw ArgumentError("set_devices: expected nothing alive on any device, got memory from " +
                          std::string(allocation->call));
  if (!r.streams.by_number.empty() || !r.streams.events.empty() || r.streams.pending)
    throw ArgumentError("set_devices: expected nothing alive on any device, got streams or events");
  r.remove_devices();
  r.reports.environment_error.clear();
  for (int i = 0; i < count; ++i) r.add_device(memory_bytes);
  detail::current_device = 0;
}

std::vector<LiveObject> live_objects() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  std::vector<LiveObject> list;
  for (const auto& [address, a] : r.memory.allocations) {
    if (a->freed) continue;
    const char* what = a->place == detail::Place::device ? "device memory" : "pinned memory";
    list.push_back({what,
                    str(what, ", ", a->bytes, " bytes on cuda:", a->device, ", from ", a->call,
                        " at ", detail::describe(a->where)),
                    a->device});
  }
  for (const auto& [number, s] : r.streams.by_number)
    if (s->alive && s->of_user)
      list.push_back(
          {"stream",
           str("stream of cuda:", s->device, ", created at ", detail::describe(s->created)),
           s->device});
  for (const auto& [number, e] : r.streams.events)
    list.push_back({"event",
                    str("event of cuda:", e->device, ", created at ", detail::describe(e->created)),
                    e->device});
  for (const auto& [number, graph] : r.captures.graphs)
    list.push_back({"graph", str("graph, captured at ", detail::describe(graph->captured)), -1});
  for (const auto& [number, instance] : r.captures.instances)
    list.push_back({"graph instance",
                    str("instance of a graph, created at ", detail::describe(instance->created)),
                    -1});
  return list;
}

namespace {

void annotate(const char* call, bool give, void* p, std::size_t bytes, cudaStream_t handle,
              Location where) {
  using detail::Runtime;
  Runtime& r = detail::runtime();
  {
    const Runtime::Lock lock(r.mutex);
    if (r.device_count() == 0) return;
    const auto stream = r.find_stream(handle, call, where);
    const detail::AllocationPtr allocation = r.memory.find_allocation(p);
    if (!stream || r.reports.sticky_of(stream->device) != cudaSuccess) return;
    if (!allocation || allocation->freed ||
        static_cast<std::size_t>(static_cast<char*>(p) - allocation->base) + bytes >
            allocation->bytes) {
      r.reports.add(ReportKind::out_of_bounds, stream->device, where, {},
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
