#include <braid/core/error.hpp>

#include <chrono>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using braid::str;
using detail::EventState;
using detail::Runtime;

namespace braid::simt::detail {

std::shared_ptr<EventState> Runtime::find_event(cudaEvent_t handle, const char* call,
                                                Location where) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (const auto event = streams.events.find(number); event != streams.events.end())
    return event->second;
  const auto dead = streams.dead_events.find(number);
  const bool known = dead != streams.dead_events.end();
  reports.add(
      ReportKind::destroyed_handle, current_device, where,
      known ? dead->second.destroyed : Location{},
      known ? str(call, " at ", describe(where), " uses the event that was created at ",
                  describe(dead->second.created), " and destroyed at ",
                  describe(dead->second.destroyed))
            : str(call, " at ", describe(where), ": expected an event, got a handle that is none"));
  return nullptr;
}

}  // namespace braid::simt::detail

namespace {

constexpr unsigned kEventFlags = cudaEventBlockingSync | cudaEventDisableTiming;

cudaError_t create(const char* call, cudaEvent_t* event, unsigned flags, Location where) {
  return detail::runtime_call(call, [&](Runtime& r) {
    if (!event || (flags & ~kEventFlags)) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    if (const cudaError_t sticky = r.reports.sticky_of(detail::current_device);
        sticky != cudaSuccess)
      return sticky;
    auto made = std::make_shared<EventState>();
    made->device = detail::current_device, made->flags = flags, made->created = where;
    r.streams.events[r.streams.next_event] = std::move(made);
    *event = reinterpret_cast<cudaEvent_t>(static_cast<std::uintptr_t>(r.streams.next_event++));
    return cudaSuccess;
  });
}

cudaError_t record(const char* call, cudaEvent_t event, cudaStream_t stream, unsigned flags,
                   Location where) {
  return detail::runtime_call(call, [&](Runtime& r) {
    if (flags != cudaEventRecordDefault)
      return flags == cudaEventRecordExternal ? cudaErrorIllegalState : cudaErrorInvalidValue;
    {
      const Runtime::Lock lock(r.mutex);
      const auto e = r.find_event(event, call, where);
      if (!e) return cudaErrorInvalidResourceHandle;
      const auto s = r.find_stream(stream, call, where);
      if (!s) return cudaErrorInvalidResourceHandle;
      if (e->device != s->device) {
        r.reports.add(ReportKind::wrong_device, s->device, where, e->created,
                      str(call, " at ", detail::describe(where), ": a stream of cuda:", s->device,
                          " records the event of cuda:", e->device, " that was created at ",
                          detail::describe(e->created)));
        return cudaErrorInvalidResourceHandle;
      }
      if (const cudaError_t error = r.forbidden_work(*s); error != cudaSuccess) return error;
      e->record = r.enqueue(*s, detail::OpKind::record, call, where, nullptr);
    }
    r.settle();
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaEventCreate(cudaEvent_t* event, Location where) {
  return create("cudaEventCreate", event, cudaEventDefault, where);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags, Location where) {
  return create("cudaEventCreateWithFlags", event, flags, where);
}

cudaError_t cudaEventDestroy(cudaEvent_t event, Location where) {
  return detail::release_call("cudaEventDestroy", [&](Runtime& r) {
    const Runtime::Lock lock(r.mutex);
    const auto e = r.find_event(event, "cudaEventDestroy", where);
    if (!e) return cudaErrorInvalidResourceHandle;
    // A record that is still pending runs nevertheless.
    const auto number = reinterpret_cast<std::uintptr_t>(event);
    detail::Streams::keep_dead(r.streams.dead_events, number, {e->created, where});
    r.streams.events.erase(number);
    return r.reports.sticky_of(e->device);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, Location where) {
  return record("cudaEventRecord", event, stream, cudaEventRecordDefault, where);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags,
                                     Location where) {
  return record("cudaEventRecordWithFlags", event, stream, flags, where);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags,
                                Location where) {
  return detail::runtime_call("cudaStreamWaitEvent", [&](Runtime& r) {
    if (flags != cudaEventWaitDefault)
      return flags == cudaEventWaitExternal ? cudaErrorIllegalState : cudaErrorInvalidValue;
    {
      const Runtime::Lock lock(r.mutex);
      const auto s = r.find_stream(stream, "cudaStreamWaitEvent", where);
      if (!s) return cudaErrorInvalidResourceHandle;
      const auto e = r.find_event(event, "cudaStreamWaitEvent", where);
      if (!e) return cudaErrorInvalidResourceHandle;
      if (const cudaError_t error = r.forbidden_work(*s); error != cudaSuccess) return error;
      // Waits for the event's present record, whatever is recorded later. An event that was never
      // recorded counts as complete.
      if (!e->record) return cudaSuccess;
      if (const cudaError_t error = r.wait_for_record(*s, e->record, "cudaStreamWaitEvent", where);
          error != cudaSuccess)
        return error;
    }
    r.settle();
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event, Location where) {
  return detail::runtime_call("cudaEventSynchronize", [&](Runtime& r) {
    detail::OpPtr op;
    int device = 0;
    {
      const Runtime::Lock lock(r.mutex);
      const auto e = r.find_event(event, "cudaEventSynchronize", where);
      if (!e) return cudaErrorInvalidResourceHandle;
      if (const cudaError_t error = r.forbidden_wait(*e); error != cudaSuccess) return error;
      op = e->record;
      device = e->device;
    }
    if (op) r.run_until(op);
    const Runtime::Lock lock(r.mutex);
    if (op) r.learn(op->clock);
    return r.reports.sticky_of(device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event, Location where) {
  return detail::runtime_call("cudaEventQuery", [&](Runtime& r) {
    detail::OpPtr op;
    int device = 0;
    {
      const Runtime::Lock lock(r.mutex);
      const auto e = r.find_event(event, "cudaEventQuery", where);
      if (!e) return cudaErrorInvalidResourceHandle;
      if (const cudaError_t error = r.forbidden_wait(*e); error != cudaSuccess) return error;
      if (const cudaError_t error = r.forbidden_while_capturing(); error != cudaSuccess)
        return error;
      op = e->record;
      device = e->device;
    }
    if (op) r.run_some();  // so that a program that polls makes progress
    const Runtime::Lock lock(r.mutex);
    if (const cudaError_t sticky = r.reports.sticky_of(device); sticky != cudaSuccess)
      return sticky;
    if (op && !op->done) return cudaErrorNotReady;
    if (op) r.learn(op->clock);
    return r.reports.sticky_of(device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end,
                                 Location where) {
  return detail::runtime_call("cudaEventElapsedTime", [&](Runtime& r) {
    if (!milliseconds) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const auto a = r.find_event(start, "cudaEventElapsedTime", where),
               b = r.find_event(end, "cudaEventElapsedTime", where);
    if (!a || !b || !a->record || !b->record || a->device != b->device)
      return cudaErrorInvalidResourceHandle;
    for (const auto& event : {a, b})
      if (const cudaError_t error = r.forbidden_wait(*event); error != cudaSuccess) return error;
    if ((a->flags | b->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t sticky = r.reports.sticky_of(a->device); sticky != cudaSuccess)
      return sticky;
    if (!a->record->done || !b->record->done) return cudaErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(b->record->time - a->record->time).count();
    return cudaSuccess;
  });
}
