// Direct calls of the CUDA runtime: upper bounds of what any program can reach on this GPU.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "library/abi.hpp"
#include "library/empty.hpp"

namespace bench::gpu {
namespace {

using Clock = std::chrono::steady_clock;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess)
    throw braid::Error(std::string(call) + ": " + cudaGetErrorString(error));
}
double micros(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// The resources of a measurement; released by the destructor, also after an exception.
struct Rig {
  cudaStream_t stream{};
  cudaEvent_t start{}, end{};
  void *from = nullptr, *to = nullptr, *pinned = nullptr;
  Rig() {
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
  }
  ~Rig() {
    (void)cudaStreamSynchronize(stream);
    if (from != nullptr) (void)cudaFree(from);
    if (to != nullptr) (void)cudaFree(to);
    if (pinned != nullptr) (void)cudaFreeHost(pinned);
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(end);
    (void)cudaStreamDestroy(stream);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void* device_memory(std::size_t bytes) {
    void* p = nullptr;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    check(cudaMemsetAsync(p, 0x3c, bytes, stream), "cudaMemsetAsync");
    return p;
  }
  /// Returns the mean time in us of `count` calls, measured between two events.
  template <class F> double timed(int count, F call) {
    call();
    check(cudaEventRecord(start, stream), "cudaEventRecord");
    for (int i = 0; i < count; ++i) call();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, end), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1e3 / count;
  }
};

// The median of `count` copies, after half a second of warm-up: an idle GPU takes that long to
// raise its clocks.
double copy(std::size_t bytes, int count) {
  constexpr double kWarmUs = SIMT_EMULATED ? 0 : 5e5;
  Rig rig;
  rig.from = rig.device_memory(bytes);
  rig.to = rig.device_memory(bytes);
  const auto once = [&] {
    check(cudaMemcpyAsync(rig.to, rig.from, bytes, cudaMemcpyDeviceToDevice, rig.stream),
          "cudaMemcpyAsync");
  };
  for (const auto start = Clock::now(); micros(start) < kWarmUs;) {
    for (int i = 0; i < 16; ++i) once();
    check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  }
  std::vector<double> us;
  for (int i = 0; i < count; ++i) us.push_back(rig.timed(1, once));
  std::nth_element(us.begin(), us.begin() + count / 2, us.end());
  return us[static_cast<std::size_t>(count / 2)];
}

double pinned_upload(std::size_t bytes, int count) {
  Rig rig;
  rig.to = rig.device_memory(bytes);
  check(cudaMallocHost(&rig.pinned, bytes), "cudaMallocHost");
  std::memset(rig.pinned, 0x3c, bytes);
  return rig.timed(count, [&] {
    check(cudaMemcpyAsync(rig.to, rig.pinned, bytes, cudaMemcpyHostToDevice, rig.stream),
          "cudaMemcpyAsync");
  });
}

// The host waits in such a copy, so the host's clock is used.
double pageable_upload(std::size_t bytes, int count) {
  Rig rig;
  rig.to = rig.device_memory(bytes);
  const std::vector<char> host(bytes, 0x3c);
  check(cudaMemcpyAsync(rig.to, host.data(), bytes, cudaMemcpyHostToDevice, rig.stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i)
    check(cudaMemcpyAsync(rig.to, host.data(), bytes, cudaMemcpyHostToDevice, rig.stream),
          "cudaMemcpyAsync");
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  return micros(start) / count;
}

double launch(std::size_t, int count) {
  Rig rig;
  return rig.timed(count, [&] { check(launch_empty(rig.stream), "launch"); });
}

// The host's time for a launch. `count` must be small enough that the launch queue does not fill
// up.
double launch_host(std::size_t, int count) {
  Rig rig;
  check(launch_empty(rig.stream), "launch");
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) check(launch_empty(rig.stream), "launch");
  const double us = micros(start) / count;
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  return us;
}

// A graph of many launches in sequence: the time of its replay divided by the number of nodes.
double graph_node(std::size_t, int count) {
  constexpr int kNodes = 200;
  Rig rig;
  cudaGraph_t graph{};
  cudaGraphExec_t ready{};
  check(launch_empty(rig.stream), "launch");  // loads the kernel; not possible in a capture
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  check(cudaStreamBeginCapture(rig.stream, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  for (int i = 0; i < kNodes; ++i) check(launch_empty(rig.stream), "launch");
  check(cudaStreamEndCapture(rig.stream, &graph), "cudaStreamEndCapture");
  const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(made, "cudaGraphInstantiate");
  const double us = rig.timed(count, [&] {
    check(cudaGraphLaunch(ready, rig.stream), "cudaGraphLaunch");
  }) / kNodes;
  (void)cudaGraphExecDestroy(ready);
  return us;
}

// cudaMallocAsync with the driver's default pool, set to keep freed memory.
double malloc_async(std::size_t bytes, int count) {
  Rig rig;
  cudaMemPool_t pool{};
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  unsigned long long keep = ~0ull;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "cudaMemPoolSetAttribute");
  const auto once = [&] {
    void* p = nullptr;
    check(cudaMallocAsync(&p, bytes, rig.stream), "cudaMallocAsync");
    check(cudaFreeAsync(p, rig.stream), "cudaFreeAsync");
  };
  once();
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) once();
  const double us = micros(start) / count;
  keep = 0;
  check(cudaStreamSynchronize(rig.stream), "cudaStreamSynchronize");
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "cudaMemPoolSetAttribute");
  return us;
}

// Braid's allocator: cache hits on the device's default stream.
double braid_malloc(std::size_t bytes, int count) {
  braid::DeviceBackend& backend = *braid::device_context(device()).backend;
  braid::Stream& stream = backend.default_stream();
  backend.release(backend.allocate(bytes, stream), stream);
  const std::uint64_t before = backend.memory_stats().hits;
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) backend.release(backend.allocate(bytes, stream), stream);
  const double us = micros(start) / count;
  const std::uint64_t hits = backend.memory_stats().hits - before;
  if (hits != static_cast<std::uint64_t>(count))
    throw braid::Error(braid::str("braid_malloc: expected ", count, " hits, got ", hits));
  return us;
}

}  // namespace

double time_call(const std::string& what, std::size_t bytes, int count) {
  struct Entry {
    const char* name;
    double (*time)(std::size_t bytes, int count);
  };
  constexpr Entry kEntries[] = {{"copy", copy},
                                {"pinned_upload", pinned_upload},
                                {"pageable_upload", pageable_upload},
                                {"launch", launch},
                                {"launch_host", launch_host},
                                {"graph_node", graph_node},
                                {"malloc_async", malloc_async},
                                {"braid_malloc", braid_malloc}};
  for (const Entry& entry : kEntries)
    if (what == entry.name) return entry.time(bytes, count);
  throw braid::ArgumentError("bb_call_us: there is no call '" + what + "'");
}

}  // namespace bench::gpu
