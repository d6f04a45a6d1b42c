// Devices, memory and errors of the runtime.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>

#include "ptx/program.hpp"
#include "ptx/runtime.hpp"
#include "simt/runtime/error_texts.hpp"

namespace ptx::runtime {

namespace {

constexpr int kMost = 16;
thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> losses[kMost];

/// A piece of memory of a device (its index) or of the host (-1).
struct Piece {
  std::size_t bytes;
  int device;
};
struct Memory {
  std::mutex lock;
  std::map<std::uint64_t, Piece> pieces;
  std::size_t used[kMost] = {};
  std::atomic<std::uint64_t> changes{0};
};
Memory& memory() {
  static auto* all = new Memory;
  return *all;
}
std::size_t capacity() {
  static const std::size_t mib = std::stoul(setting("BRAID_PTX_MEMORY", "2048"));
  return mib << 20;
}

/// Returns true if one piece contains the bytes. Checks the piece of the last call first.
bool is_allowed(std::uint64_t address, std::size_t bytes, bool) {
  thread_local std::uint64_t begin = 1, end = 0, changes = 0;
  Memory& m = memory();
  if (changes == m.changes && address >= begin && address + bytes <= end) return true;
  const std::lock_guard held(m.lock);
  auto it = m.pieces.upper_bound(address);
  if (it == m.pieces.begin()) return false;
  --it;
  if (address + bytes > it->first + it->second.bytes) return false;
  changes = m.changes, begin = it->first, end = begin + it->second.bytes;
  return true;
}

cudaError_t allocate(void** pointer, std::size_t bytes, int where) {
  if (const cudaError_t error = lost(current()); error != cudaSuccess) return error;
  allows = &is_allowed;
  Memory& m = memory();
  const std::lock_guard held(m.lock);
  const std::size_t rounded = (bytes + 511) / 512 * 512;
  if (where >= 0 && m.used[where] + rounded > capacity()) return failed(cudaErrorMemoryAllocation);
  void* data = std::aligned_alloc(512, rounded + 512);
  if (data == nullptr) return failed(cudaErrorMemoryAllocation);
  std::memset(data, 0xff, rounded);  // NaN, -1
  if (where >= 0) m.used[where] += rounded;
  m.pieces[reinterpret_cast<std::uint64_t>(data)] = {bytes, where};
  ++m.changes;
  *pointer = data;
  return cudaSuccess;
}
cudaError_t release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  Memory& m = memory();
  const std::lock_guard held(m.lock);
  const auto it = m.pieces.find(reinterpret_cast<std::uint64_t>(pointer));
  if (it == m.pieces.end()) return failed(cudaErrorInvalidValue);
  if (it->second.device >= 0) m.used[it->second.device] -= (it->second.bytes + 511) / 512 * 512;
  m.pieces.erase(it);
  ++m.changes;
  std::free(pointer);
  return cudaSuccess;
}

}  // namespace

int current() { return device; }
int device_count() {
  static const int count = std::stoi(setting("BRAID_PTX_DEVICES", "1"));
  return std::min(count, kMost);
}
cudaError_t lost(int which) { return losses[which]; }
void lose(int which, cudaError_t why) { losses[which] = why; }
cudaError_t failed(cudaError_t error) { return last_error = error; }
bool is_known(const void* address) {
  return is_allowed(reinterpret_cast<std::uint64_t>(address), 1, false);
}

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  ptx::runtime::last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  const cudaError_t error = lost(current());
  return error != cudaSuccess ? error : ptx::runtime::last_error;
}
const char* cudaGetErrorName(cudaError_t error) { return braid::simt::detail::error_name(error); }
const char* cudaGetErrorString(cudaError_t error) { return braid::simt::detail::error_text(error); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= device_count()) return failed(cudaErrorInvalidDevice);
  ptx::runtime::device = which;
  return lost(which);
}
cudaError_t cudaGetDevice(int* which) {
  *which = current();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "PTX on the CPU");
  const int architecture = std::stoi(setting("BRAID_PTX_ARCH", "90"));
  properties->major = architecture / 10, properties->minor = architecture % 10;
  properties->totalGlobalMem = ptx::runtime::capacity();
  properties->multiProcessorCount = 4;
  properties->sharedMemPerBlock = 48 << 10;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int which) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, which);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    default:
      std::cerr << "PTX: unknown device attribute " << attribute << std::endl;
      return failed(cudaErrorNotSupported);
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return ptx::runtime::allocate(pointer, bytes, current());
}
cudaError_t cudaFree(void* pointer) {
  if (pointer != nullptr) settle(current());
  return ptx::runtime::release(pointer);
}
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return ptx::runtime::allocate(pointer, bytes, -1);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}
cudaError_t cudaFreeHost(void* pointer) { return ptx::runtime::release(pointer); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;  // a block is freed when its stream reaches the free; nothing is cached
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
}
