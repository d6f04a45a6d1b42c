#include "cuda/runtime/peer.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

#include <braid/core/error.hpp>

#include "cuda/runtime/errors.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kWords = 16 * 1024;
constexpr std::size_t kBytes = kWords * sizeof(std::uint32_t);

/// A sequence in which each word depends on its position, so that misplaced data is detected too.
std::vector<std::uint32_t> pattern(const Gpu& a, const Gpu& b) {
  std::vector<std::uint32_t> words(kWords);
  std::uint32_t word = 0x9e3779b9u + static_cast<std::uint32_t>(a.ordinal() * 64 + b.ordinal());
  for (std::uint32_t& w : words) w = word = word * 1664525u + 1013904223u;
  return words;
}

bool allowed(Gpu& a, Gpu& b, Device device) {
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, from->ordinal(), to->ordinal()), "cudaDeviceCanAccessPeer",
          a, device);
    if (can == 0) return false;
  }
  return true;
}

/// The driver copies directly between two GPUs only if access is enabled. Emulated copies need no
/// access, and it stays disabled there, so that a kernel that accesses another device's memory is
/// detected. Returns false if the driver refuses, for example beyond the number of peers of a GPU.
bool enable([[maybe_unused]] Gpu& from, [[maybe_unused]] Gpu& to, [[maybe_unused]] Device device) {
#if SIMT_EMULATED
  return true;
#else
  const DeviceGuard guard(from, device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(to.ordinal(), 0);
  // enabled by the program itself
  return settle(error, from) || error == cudaErrorPeerAccessAlreadyEnabled;
#endif
}

/// Memory for patterns. It is kept, because cudaFree waits for the whole device. Requires the lock
/// of the test.
char* probe_memory(Gpu& gpu, Device device) {
  if (gpu.probe() == nullptr) {
    const DeviceGuard guard(gpu, device);
    void* memory = nullptr;
    check(cudaMalloc(&memory, 2 * kBytes), "cudaMalloc", gpu, device);
    gpu.set_probe(memory);
  }
  return static_cast<char*>(gpu.probe());
}

/// Copies a pattern there and back, and compares both results. `a` and `b` are different GPUs.
bool pattern_survives(const PeerEnd& a, const PeerEnd& b) {
  Gpu &gpu_a = a.stream.gpu(), &gpu_b = b.stream.gpu();
  char* const at_a = probe_memory(gpu_a, a.stream.device());
  char* const at_b = probe_memory(gpu_b, b.stream.device());
  const std::vector<std::uint32_t> sent = pattern(gpu_a, gpu_b);
  std::vector<std::uint32_t> there(kWords), back(kWords);
  try {
    a.ring.to_device(at_a, sent.data(), kBytes, a.stream);
    copy_direct(at_b, gpu_b, at_a, gpu_a, kBytes, b.stream, a.stream);
    b.ring.to_host(there.data(), at_b, kBytes, b.stream);
    copy_direct(at_a + kBytes, gpu_a, at_b, gpu_b, kBytes, a.stream, b.stream);
    a.ring.to_host(back.data(), at_a + kBytes, kBytes, a.stream);
  } catch (...) {  // the next test uses this memory
    a.stream.settle_or_lose(gpu_b);
    b.stream.settle_or_lose(gpu_a);
    throw;
  }
  return there == sent && back == sent;
}

}  // namespace

bool peer_copies_work(const PeerEnd& a, const PeerEnd& b) {
  Gpu &gpu_a = a.stream.gpu(), &gpu_b = b.stream.gpu();
  std::atomic<PeerPath>& known = gpu_a.peer_path(gpu_b);
  if (const PeerPath path = known.load(std::memory_order_acquire); path != PeerPath::unknown)
    return path == PeerPath::direct;
  static std::mutex testing;
  const std::lock_guard lock(testing);
  if (const PeerPath path = known.load(std::memory_order_acquire); path != PeerPath::unknown)
    return path == PeerPath::direct;
  bool works = allowed(gpu_a, gpu_b, a.stream.device()) &&
               enable(gpu_a, gpu_b, a.stream.device()) && enable(gpu_b, gpu_a, b.stream.device());
  if (works) {
    works = pattern_survives(a, b);
    if (!works)
      warn(str("peer copies between ", a.stream.device(), " and ", b.stream.device(),
               ": expected the numbers that were sent, got others; copies between their GPUs go "
               "through the host"));
  }
  const PeerPath path = works ? PeerPath::direct : PeerPath::staged;
  gpu_b.peer_path(gpu_a).store(path, std::memory_order_release);
  known.store(path, std::memory_order_release);
  return works;
}

void copy_direct(void* to, Gpu& to_gpu, const void* from, Gpu& from_gpu, std::size_t bytes,
                 CudaStream& stream, CudaStream& other) {
  Gpu& gpu = stream.gpu();
  cudaStream_t native = stream.get();
  other.precede(stream);
  const DeviceGuard guard(gpu, stream.device());
  if (&to_gpu == &from_gpu)
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native), "cudaMemcpyAsync",
          gpu, stream.device());
  else
    check(cudaMemcpyPeerAsync(to, to_gpu.ordinal(), from, from_gpu.ordinal(), bytes, native),
          "cudaMemcpyPeerAsync", gpu, stream.device());
  try {
    stream.precede(other);
  } catch (...) {
    // the other stream does not wait for the copy, so it must be done before the caller continues
    stream.settle_or_lose(other.gpu());
    throw;
  }
}

}  // namespace braid::cuda
