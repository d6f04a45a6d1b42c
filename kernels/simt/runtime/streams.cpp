#include <braid/core/error.hpp>

#include <algorithm>
#include <chrono>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using braid::str;
using detail::Runtime;
using detail::StreamState;

namespace braid::simt::detail {

StreamPtr Runtime::find_stream(cudaStream_t handle, const char* call, Location where) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= 1) return streams.legacy[static_cast<std::size_t>(current_device)];
  if (handle == cudaStreamPerThread) {
    auto& own = streams.per_thread[{std::this_thread::get_id(), current_device}];
    if (!own) {
      own = streams.make(current_device, cudaStreamDefault, 0, where);
      own->number = streams.next_stream++, own->of_user = false;
      streams.by_number[own->number] = own;
    }
    return own;
  }
  const auto found = streams.by_number.find(number);
  const bool exists = found != streams.by_number.end();
  if (exists && found->second->alive) return found->second;
  const auto dead = streams.dead_streams.find(number);
  Location created, destroyed;
  bool known = true;
  if (exists) created = found->second->created, destroyed = found->second->destroyed;
  else if (dead != streams.dead_streams.end())
    created = dead->second.created, destroyed = dead->second.destroyed;
  else known = false;
  reports.add(
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
    if (const cudaError_t sticky = r.reports.sticky_of(detail::current_device);
        sticky != cudaSuccess)
      return sticky;
    const auto made =
        r.streams.make(detail::current_device, flags, std::min(0, std::max(-5, priority)), where);
    made->number = r.streams.next_stream++;
    r.streams.by_number[made->number] = made;
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
    if (found->capture) {  // an invalid capture, which no call can end any more
      const detail::CapturePtr capture = found->capture;
      capture->valid = false;
      if (capture->streams.front() == found) {
        std::erase(r.captures.active, capture);
        (void)capture->end();
      }
    }
    found->alive = false;  // queued operations still run
    found->destroyed = where;
    const cudaError_t sticky = r.reports.sticky_of(found->device);
    r.streams.sweep();
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
      if (const cudaError_t error = r.forbidden_wait(*found); error != cudaSuccess) return error;
      device = found->device;
      last = found->last;
    }
    if (last) r.run_until(last);
    const Runtime::Lock lock(r.mutex);
    if (last) r.learn(last->clock);
    return r.reports.sticky_of(device);
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
      if (const cudaError_t error = r.forbidden_wait(*found); error != cudaSuccess) return error;
      device = found->device;
      last = found->last;
    }
    if (last) r.run_some();  // so that a program that polls makes progress
    const Runtime::Lock lock(r.mutex);
    if (const cudaError_t sticky = r.reports.sticky_of(device); sticky != cudaSuccess)
      return sticky;
    if (last && !last->done) return cudaErrorNotReady;
    if (last) r.learn(last->clock);
    return r.reports.sticky_of(device);
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
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data,
                               Location where) {
  return detail::runtime_call("cudaLaunchHostFunc", [&](Runtime& r) {
    if (!function) return cudaErrorInvalidValue;
    detail::OpPtr op;
    {
      const Runtime::Lock lock(r.mutex);
      const auto found = r.find_stream(stream, "cudaLaunchHostFunc", where);
      if (!found) return cudaErrorInvalidResourceHandle;
      // a host function in a graph is not emulated
      if (const cudaError_t error = r.forbidden_wait(*found); error != cudaSuccess) return error;
      op = r.enqueue(*found, detail::OpKind::host_function, "cudaLaunchHostFunc", where,
                     [function, data](detail::Op&) { function(data); });
    }
    // The program may wait for the function's effects without a runtime call, so the function
    // starts now. Most functions end immediately. Waiting a short time for them makes programs take
    // the same path every time.
    r.run_until([&] { return op->running || op->done; });
    Runtime::Lock lock(r.mutex);
    r.streams.finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return op->done; });
    return cudaSuccess;
  });
}
