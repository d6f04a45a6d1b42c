#include "simt/runtime/capture.hpp"

#include <algorithm>
#include <utility>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using detail::Runtime;

namespace braid::simt::detail {
namespace {

// the mode that cudaThreadExchangeStreamCaptureMode sets
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::uint32_t slot_of(const Capture& capture, const StreamState& stream) {
  const auto found = std::find_if(capture.streams.begin(), capture.streams.end(),
                                  [&](const StreamPtr& s) { return s.get() == &stream; });
  return static_cast<std::uint32_t>(found - capture.streams.begin());
}

}  // namespace

OpPtr Capture::add(const StreamState& stream, OpKind kind, const char* call, Location where,
                   std::function<void(Op&)> run, const std::vector<OpPtr>& needs) {
  auto op = std::make_shared<Op>();
  op->kind = kind, op->call = call, op->where = where, op->device = stream.device,
  op->run = std::move(run);
  op->slot = slot_of(*this, stream);
  op->capture = stream.capture;
  OpPtr& before = last[op->slot];
  if (before) {
    op->clock.join(before->clock);
    if (before->slot != op->slot) op->needs.push_back(before);  // it forks here
  }
  for (const OpPtr& need : needs) {
    op->clock.join(need->clock);
    op->needs.push_back(need);
  }
  op->tick = op->clock.at(op->slot) + 1;
  op->clock.set(op->slot, op->tick);
  before = op;
  ops.push_back(op);
  return op;
}

void Capture::fork(const StreamPtr& stream, const OpPtr& record) {
  stream->capture = record->capture;
  streams.push_back(stream);
  last.push_back(record);
}

std::vector<OpPtr> Capture::end() {
  for (const StreamPtr& stream : streams) stream->capture = nullptr;
  streams.clear();
  last.clear();
  return std::move(ops);
}

bool Capture::joined() const {
  return std::all_of(last.begin(), last.end(), [&](const OpPtr& op) {
    return !op || op == last[0] || (last[0] && ordered(*op, *last[0]));
  });
}

void Captures::clear() {
  for (const CapturePtr& capture : std::exchange(active, {})) (void)capture->end();
  graphs.clear();
  instances.clear();
}

cudaError_t Runtime::forbidden_while_capturing() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const CapturePtr& capture : captures.active) {
    const bool own = capture->thread == std::this_thread::get_id() &&
                     capture->mode != cudaStreamCaptureModeRelaxed;
    const bool any =
        thread_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (!own && !any) continue;
    capture->valid = false;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t Runtime::forbidden_work(const StreamState& stream, bool invalidates) {
  cudaError_t error = reports.sticky_of(stream.device);
  if (error != cudaSuccess || !stream.legacy) return error;
  for (const CapturePtr& capture : captures.active)
    for (const StreamPtr& other : capture->streams) {
      if (other->device != stream.device || !other->blocking()) continue;
      error = cudaErrorStreamCaptureImplicit;
      if (invalidates) capture->valid = false;
    }
  return error;
}

cudaError_t Runtime::forbidden_wait(const StreamState& stream) {
  if (!stream.capture) return forbidden_work(stream);
  stream.capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t Runtime::forbidden_wait(int device) {
  cudaError_t error = cudaSuccess;
  for (const CapturePtr& capture : captures.active)
    for (const StreamPtr& stream : capture->streams)
      if (stream->device == device)
        capture->valid = false, error = cudaErrorStreamCaptureUnsupported;
  return error != cudaSuccess ? error : forbidden_while_capturing();
}

cudaError_t Runtime::forbidden_wait(const EventState& event) {
  if (!event.record || !event.record->capture) return cudaSuccess;
  event.record->capture->valid = false;
  return cudaErrorCapturedEvent;
}

cudaError_t Runtime::wait_for_record(StreamState& stream, const OpPtr& record, const char* call,
                                     Location where) {
  const CapturePtr recorded = record->capture;
  if (stream.capture) {
    if (recorded != stream.capture) {
      stream.capture->valid = false;
      if (recorded) recorded->valid = false;
      return recorded ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
    }
  } else if (recorded) {
    const bool active = std::find(captures.active.begin(), captures.active.end(), recorded) !=
                        captures.active.end();
    if (!active) return cudaErrorCapturedEvent;
    if (stream.legacy) {
      recorded->valid = false;
      return cudaErrorStreamCaptureImplicit;
    }
    recorded->fork(streams.by_number.at(stream.number), record);
    return cudaSuccess;  // its first operation comes after the record
  }
  enqueue(stream, OpKind::wait, call, where, nullptr, {record});
  return cudaSuccess;
}

}  // namespace braid::simt::detail

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode,
                                   Location where) {
  return detail::runtime_call("cudaStreamBeginCapture", [&](Runtime& r) {
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const auto found = r.find_stream(stream, "cudaStreamBeginCapture", where);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t sticky = r.reports.sticky_of(found->device); sticky != cudaSuccess)
      return sticky;
    if (found->legacy) return cudaErrorStreamCaptureUnsupported;
    if (found->capture) return cudaErrorIllegalState;
    auto capture = std::make_shared<detail::Capture>();
    capture->mode = mode, capture->thread = std::this_thread::get_id(), capture->begun = where;
    capture->streams.push_back(found);
    capture->last.push_back(nullptr);
    found->capture = capture;
    r.captures.active.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, Location where) {
  return detail::release_call("cudaStreamEndCapture", [&](Runtime& r) {
    if (!graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    const Runtime::Lock lock(r.mutex);
    const auto found = r.find_stream(stream, "cudaStreamEndCapture", where);
    if (!found) return cudaErrorInvalidResourceHandle;
    const detail::CapturePtr capture = found->capture;
    if (!capture) return cudaErrorIllegalState;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id()) {
      capture->valid = false;
      return cudaErrorStreamCaptureWrongThread;
    }
    if (capture->streams.front() != found) {
      capture->valid = false;
      return cudaErrorStreamCaptureUnmatched;
    }
    std::erase(r.captures.active, capture);
    auto made = std::make_shared<detail::Graph>();
    made->slots = capture->streams.size(), made->captured = capture->begun;
    const bool joined = capture->joined();
    made->ops = capture->end();
    if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = reinterpret_cast<cudaGraph_t>(static_cast<std::uintptr_t>(r.captures.next));
    r.captures.graphs[r.captures.next++] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                  Location where) {
  return detail::runtime_call("cudaStreamIsCapturing", [&](Runtime& r) {
    if (!status) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const auto found = r.find_stream(stream, "cudaStreamIsCapturing", where);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = r.forbidden_work(*found, false); error != cudaSuccess)
      return error;
    *status = !found->capture         ? cudaStreamCaptureStatusNone
              : found->capture->valid ? cudaStreamCaptureStatusActive
                                      : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode, Location) {
  return detail::runtime_call("cudaThreadExchangeStreamCaptureMode", [&](Runtime&) {
    if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    std::swap(*mode, detail::thread_mode);
    return cudaSuccess;
  });
}
