// Streams, events and launches of the runtime.
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include "ptx/runtime.hpp"

namespace ptx::runtime {

namespace {

/// The existing streams. To destroy one that is in use is an error of the program.
struct Streams {
  std::mutex lock;
  std::set<Stream*> all;
};
Streams& streams() {
  static auto* all = new Streams;
  return *all;
}
struct Event {
  std::shared_ptr<Ticket> recorded;
};

/// Returns null for the default stream, which would order streams that the program has not ordered.
Stream* find(cudaStream_t handle) {
  auto* stream = reinterpret_cast<Stream*>(handle);
  const std::lock_guard held(streams().lock);
  return streams().all.count(stream) != 0 ? stream : nullptr;
}
Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

/// Runs an operation on a stream. Refuses it if the stream does not exist or its device is lost.
template <class F> cudaError_t on(cudaStream_t handle, F operation) {
  Stream* stream = find(handle);
  if (stream == nullptr) return failed(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = lost(stream->device()); error != cudaSuccess) return error;
  operation(*stream);
  return lost(stream->device());
}

}  // namespace

Clock& clock() {
  static auto* one = new Clock;
  return *one;
}
void finish(Ticket& ticket) {
  const std::lock_guard held(clock().lock);
  ticket.over = true, ticket.time = std::chrono::steady_clock::now();
  clock().changed.notify_all();
}
bool is_over(const Ticket& ticket) {
  const std::lock_guard held(clock().lock);
  return ticket.over;
}
void wait_for(const Ticket& ticket) {
  std::unique_lock held(clock().lock);
  clock().changed.wait(held, [&] { return ticket.over; });
}

Stream::Stream(int device, unsigned flags)
    : device_(device),
      flags_(flags),
      last_(std::make_shared<Ticket>()),
      thread_([this] { work(); }) {
  finish(*last_);
}
Stream::~Stream() {
  {
    const std::lock_guard held(clock().lock);
    ends_ = true;
    clock().changed.notify_all();
  }
  thread_.join();
}
std::shared_ptr<Ticket> Stream::queue(std::function<void()> work) {
  const std::lock_guard held(clock().lock);
  last_ = std::make_shared<Ticket>();
  queue_.emplace_back(std::move(work), last_);
  clock().changed.notify_all();
  return last_;
}
std::shared_ptr<Ticket> Stream::last() {
  const std::lock_guard held(clock().lock);
  return last_;
}
void Stream::work() {
  for (;;) {
    std::unique_lock held(clock().lock);
    clock().changed.wait(held, [&] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto [operation, ticket] = std::move(queue_.front());
    queue_.pop_front();
    held.unlock();
    operation();
    operation = nullptr;  // what it holds is released before another thread sees that it is done
    finish(*ticket);
  }
}

void settle(int device) {
  std::vector<std::shared_ptr<Ticket>> tickets;
  {
    const std::lock_guard held(streams().lock);
    for (Stream* stream : streams().all)
      if (stream->device() == device) tickets.push_back(stream->last());
  }
  for (const auto& ticket : tickets) wait_for(*ticket);
}

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  if (const cudaError_t error = lost(current()); error != cudaSuccess) return error;
  auto* stream = new Stream(current(), flags);
  const std::lock_guard held(streams().lock);
  streams().all.insert(stream);
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return on(handle, [&](const Stream& stream) { *flags = stream.flags(); });
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return failed(cudaErrorInvalidResourceHandle);
  {
    const std::lock_guard held(streams().lock);
    streams().all.erase(stream);
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return on(handle, [](Stream& stream) { wait_for(*stream.last()); });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  bool over = false;
  const cudaError_t error = on(handle, [&](Stream& stream) { over = is_over(*stream.last()); });
  return error == cudaSuccess && !over ? cudaErrorNotReady : error;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return on(handle, [&](Stream& stream) {
    if (auto ticket = event_of(event).recorded) stream.queue([ticket] { wait_for(*ticket); });
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return on(handle, [&](Stream& stream) { stream.queue([function, data] { function(data); }); });
}

// ---- graphs: there are none. Braid then runs a captured step as usual.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return failed(cudaErrorNotSupported); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return failed(cudaErrorNotSupported); }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return failed(cudaErrorNotSupported); }

// ---- events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned) {
  if (const cudaError_t error = lost(current()); error != cudaSuccess) return error;
  *handle = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  delete &event_of(handle);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on_stream) {
  return on(on_stream, [&](Stream& stream) { event_of(handle).recorded = stream.queue([] {}); });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const auto& ticket = event_of(handle).recorded;
  return ticket == nullptr || is_over(*ticket) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (const auto ticket = event_of(handle).recorded) wait_for(*ticket);
  return lost(current());
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const auto &a = event_of(from).recorded, &b = event_of(to).recorded;
  if (a == nullptr || b == nullptr) return failed(cudaErrorInvalidResourceHandle);
  if (!is_over(*a) || !is_over(*b)) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(b->time - a->time).count();
  return cudaSuccess;
}

// ---- launches
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t handle) {
  Kernel* const kernel = find_kernel(function);
  if (kernel == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  const std::uint64_t threads = std::uint64_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return failed(cudaErrorInvalidConfiguration);
  if (const cudaError_t error = prepare(*kernel); error != cudaSuccess) return failed(error);
  // the arguments are copied now
  const std::vector<std::size_t> sizes = parameter_sizes(*kernel);
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const char* from = static_cast<const char*>(arguments[k]);
    values->emplace_back(from, from + sizes[k]);
  }
  return on(handle, [&](Stream& stream) {
    stream.queue([=, device = stream.device()] {
      std::vector<void*> pointers;
      for (auto& value : *values) pointers.push_back(value.data());
      if (lost(device) == cudaSuccess)
        execute(*kernel, device, grid, block, shared, pointers.data());
    });
  });
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared,
                          stream);
}
// Part of <<<>>>, which Braid does not use. nvcc's code for kernels refers to it nevertheless.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaErrorNotSupported;
}

// ---- copies
static cudaError_t copy(cudaStream_t handle, std::function<void()> work, bool at_once) {
  return on(handle, [&](Stream& stream) {
    const auto ticket = stream.queue(std::move(work));
    if (at_once) wait_for(*ticket);
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t handle) {
  return copy(handle, [=] { std::memmove(to, from, bytes); }, !is_known(to) || !is_known(from));
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t handle) {
  return copy(handle, [=] { std::memmove(to, from, bytes); }, false);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return copy(handle, [=] { std::memset(to, value, bytes); }, false);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return copy(handle, [=] { cudaFreeHost(pointer); }, false);
}
}
