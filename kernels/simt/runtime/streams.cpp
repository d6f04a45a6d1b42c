#include <braid/core/error.hpp>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using braid::str;
using detail::Runtime;
using detail::StreamState;

namespace braid::simt::detail {

// Removes destroyed streams whose operations the host knows to be complete. Their slots can be
// reused.
void Runtime::sweep_streams() {
  std::erase_if(streams, [this](const auto& entry) {
    const StreamState& stream = *entry.second;
    if (stream.alive || !stream.queue.empty() || host.at(stream.slot) < ticks[stream.slot])
      return false;
    free_slots.push_back(stream.slot);
    keep_dead(dead_streams, stream.number, {stream.created, stream.destroyed});
    return true;
  });
}

std::shared_ptr<StreamState> Runtime::make_stream(int device, unsigned flags, int priority,
                                                  Location where) {
  sweep_streams();
  auto stream = std::make_shared<StreamState>();
  stream->device = device, stream->flags = flags, stream->priority = priority,
  stream->created = where;
  if (!free_slots.empty()) {
    stream->slot = free_slots.back();
    free_slots.pop_back();
  } else {
    stream->slot = static_cast<std::uint32_t>(ticks.size());
    ticks.push_back(0);
  }
  stream->clock = host;
  return stream;
}

std::shared_ptr<StreamState> Runtime::find_stream(cudaStream_t handle, const char* call,
                                                  Location where) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= 1) return devices[static_cast<std::size_t>(current_device)].legacy;
  if (handle == cudaStreamPerThread) {
    auto& own = per_thread[{std::this_thread::get_id(), current_device}];
    if (!own) {
      own = make_stream(current_device, cudaStreamDefault, 0, where);
      own->number = next_stream++, own->of_user = false;
      streams[own->number] = own;
    }
    return own;
  }
  const auto found_one = streams.find(number);
  if (found_one != streams.end() && found_one->second->alive) return found_one->second;
  const auto dead = dead_streams.find(number);
  Location created, destroyed;
  bool known = true;
  if (found_one != streams.end())
    created = found_one->second->created, destroyed = found_one->second->destroyed;
  else if (dead != dead_streams.end())
    created = dead->second.created, destroyed = dead->second.destroyed;
  else known = false;
  report(
      ReportKind::destroyed_handle, current_device, where, destroyed,
      known ? str(call, " at ", describe(where), " uses the stream that was created at ",
                  describe(created), " and destroyed at ", describe(destroyed))
            : str(call, " at ", describe(where), ": expected a stream, got a handle that is none"));
  return nullptr;
}

}  // namespace braid::simt::detail

namespace {

cudaError_t create(const char* call, cudaStream_t* stream, unsigned flags, int priority,
                   Location where) {
  return detail::runtime_call(call, [&](Runtime& r) {
    if (!stream || (flags & ~cudaStreamNonBlocking)) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    if (const cudaError_t sticky = r.sticky_of(detail::current_device); sticky != cudaSuccess)
      return sticky;
    const auto made =
        r.make_stream(detail::current_device, flags, std::min(0, std::max(-5, priority)), where);
    made->number = r.next_stream++;
    r.streams[made->number] = made;
    *stream = reinterpret_cast<cudaStream_t>(static_cast<std::uintptr_t>(made->number));
    return cudaSuccess;
  });
}

// A call that queries a live stream.
template <class F>
cudaError_t ask(const char* call, cudaStream_t stream, const void* out, Location where,
                F&& answer) {
  return detail::runtime_call(call, [&](Runtime& r) {
    if (!out) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const auto found = r.find_stream(stream, call, where);
    if (!found) return cudaErrorInvalidResourceHandle;
    answer(*found);
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream, Location where) {
  return create("cudaStreamCreate", stream, cudaStreamDefault, 0, where);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, Location where) {
  return create("cudaStreamCreateWithFlags", stream, flags, 0, where);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority,
                                         Location where) {
  return create("cudaStreamCreateWithPriority", stream, flags, priority, where);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream, Location where) {
  return detail::release_call("cudaStreamDestroy", [&](Runtime& r) {
    const Runtime::Lock lock(r.mutex);
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return cudaErrorInvalidResourceHandle;
    const auto found = r.find_stream(stream, "cudaStreamDestroy", where);
    if (!found) return cudaErrorInvalidResourceHandle;
    found->alive = false;  // queued operations still run
    found->destroyed = where;
    const cudaError_t sticky = r.sticky_of(found->device);
    r.sweep_streams();
    return sticky;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream, Location where) {
  return detail::runtime_call("cudaStreamSynchronize", [&](Runtime& r) {
    detail::OpPtr last;
    int device = 0;
    {
      const Runtime::Lock lock(r.mutex);
      const auto found = r.find_stream(stream, "cudaStreamSynchronize", where);
      if (!found) return cudaErrorInvalidResourceHandle;
      device = found->device;
      last = found->last;
    }
    if (last) r.run_until(last);
    const Runtime::Lock lock(r.mutex);
    if (last) r.learn(last->clock);
    return r.sticky_of(device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream, Location where) {
  return detail::runtime_call("cudaStreamQuery", [&](Runtime& r) {
    detail::OpPtr last;
    int device = 0;
    {
      const Runtime::Lock lock(r.mutex);
      const auto found = r.find_stream(stream, "cudaStreamQuery", where);
      if (!found) return cudaErrorInvalidResourceHandle;
      device = found->device;
      last = found->last;
    }
    if (last) r.run_some();  // so that a program that polls makes progress
    const Runtime::Lock lock(r.mutex);
    if (const cudaError_t sticky = r.sticky_of(device); sticky != cudaSuccess) return sticky;
    if (last && !last->done) return cudaErrorNotReady;
    if (last) r.learn(last->clock);
    return r.sticky_of(device);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags, Location where) {
  return ask("cudaStreamGetFlags", stream, flags, where,
             [&](const StreamState& s) { *flags = s.flags; });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, Location where) {
  return ask("cudaStreamGetPriority", stream, priority, where,
             [&](const StreamState& s) { *priority = s.priority; });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, Location where) {
  return ask("cudaStreamGetId", stream, id, where, [&](const StreamState& s) { *id = s.number; });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device, Location where) {
  return ask("cudaStreamGetDevice", stream, device, where,
             [&](const StreamState& s) { *device = s.device; });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                  Location where) {
  return ask("cudaStreamIsCapturing", stream, status, where,
             [&](const StreamState&) { *status = cudaStreamCaptureStatusNone; });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data,
                               Location where) {
  return detail::runtime_call("cudaLaunchHostFunc", [&](Runtime& r) {
    if (!function) return cudaErrorInvalidValue;
    detail::OpPtr op;
    {
      const Runtime::Lock lock(r.mutex);
      const auto found = r.find_stream(stream, "cudaLaunchHostFunc", where);
      if (!found) return cudaErrorInvalidResourceHandle;
      if (const cudaError_t sticky = r.sticky_of(found->device); sticky != cudaSuccess)
        return sticky;
      op = r.enqueue(*found, detail::OpKind::host_function, "cudaLaunchHostFunc", where,
                     [function, data](detail::Op&) { function(data); });
    }
    // The program may wait for the function's effects without a runtime call, so the function
    // starts now. Most functions end immediately. Waiting a short time for them makes programs take
    // the same path every time.
    r.run_until([&] { return op->running || op->done; });
    Runtime::Lock lock(r.mutex);
    r.finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return op->done; });
    return cudaSuccess;
  });
}
