#include <algorithm>
#include <cstdio>
#include <cstring>

#include <braid/core/error.hpp>

#include "simt/config.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/launch.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using detail::current_device;
using detail::general_call;
using detail::Runtime;
using detail::runtime_call;

namespace {

// The emulated device has the instructions of sm_80 and the limits of an H100. The limit of shared
// memory with a kernel's attribute is config().shared_limit.
constexpr int kMajor = 8, kMinor = 0, kMultiprocessors = 4, kThreads = 1024,
              kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;
constexpr int kRegisters = 65536, kSharedPerBlock = kSharedWithoutAttribute, kReserved = 1 << 10,
              kL2 = 4 << 20, kBus = 4096;

bool known(const Runtime& r, int device) {
  return device >= 0 && device < static_cast<int>(r.device_count());
}

cudaDeviceProp properties_of(Runtime& r, int device) {
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "Braid SIMT emulation");
  const std::size_t shared = config().shared_limit;
  p.totalGlobalMem = r.memory.of(device).capacity;
  p.sharedMemPerBlock = kSharedPerBlock, p.sharedMemPerBlockOptin = shared,
  p.sharedMemPerMultiprocessor = shared + kReserved;
  p.reservedSharedMemPerBlock = kReserved, p.totalConstMem = 64 << 10, p.memPitch = 0x7fffffff;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegisters, p.warpSize = 32,
  p.maxThreadsPerBlock = kThreads;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = kThreads, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = kMajor, p.minor = kMinor, p.multiProcessorCount = kMultiprocessors;
  p.maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor,
  p.maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  p.l2CacheSize = kL2, p.memoryBusWidth = kBus, p.canMapHostMemory = 1, p.concurrentKernels = 1,
  p.asyncEngineCount = 2, p.unifiedAddressing = 1;
  p.streamPrioritiesSupported = 1, p.canUseHostPointerForRegisteredMem = 1,
  p.hostRegisterSupported = 1, p.memoryPoolsSupported = 1;
  p.pciBusID = device + 1;
  return p;
}

// Gets the value of an attribute. Returns false for one that the emulation does not have.
bool attribute_of(const cudaDeviceProp& p, cudaDeviceAttr attribute, int& value) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      value = static_cast<int>(p.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      value = static_cast<int>(p.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      value = static_cast<int>(p.reservedSharedMemPerBlock);
      break;
    case cudaDevAttrTotalConstantMemory: value = static_cast<int>(p.totalConstMem); break;
    case cudaDevAttrWarpSize: value = p.warpSize; break;
    case cudaDevAttrMaxPitch: value = static_cast<int>(p.memPitch); break;
    case cudaDevAttrMaxRegistersPerBlock: value = p.regsPerBlock; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: value = p.regsPerMultiprocessor; break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate: value = 1000000; break;  // kHz
    case cudaDevAttrTextureAlignment: value = 512; break;
    case cudaDevAttrMultiProcessorCount: value = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrGlobalMemoryBusWidth: value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: value = p.l2CacheSize; break;
    case cudaDevAttrAsyncEngineCount: value = p.asyncEngineCount; break;
    case cudaDevAttrPciBusId: value = p.pciBusID; break;
    case cudaDevAttrComputeCapabilityMajor: value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: value = p.minor; break;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported: value = 1; break;
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrClusterLaunch: value = 0; break;
    default: return false;
  }
  return true;
}

cudaError_t version(const char* call, int* out) {
  return general_call(call, [&](Runtime&) {
    if (!out) return cudaErrorInvalidValue;
    *out = CUDART_VERSION;
    return cudaSuccess;
  });
}

// Enables or disables the current device's access to `peer`.
cudaError_t peer_access(const char* call, int peer, bool on) {
  return runtime_call(call, [&](Runtime& r) {
    {
      const Runtime::Lock lock(r.mutex);
      if (!known(r, peer) || peer == current_device) return cudaErrorInvalidDevice;
      if (const cudaError_t sticky = r.reports.sticky_of(current_device); sticky != cudaSuccess)
        return sticky;
      std::set<int>& peers = r.memory.of(current_device).peers;
      if (on && !r.memory.peer_supported) return cudaErrorPeerAccessUnsupported;
      if (on && !peers.insert(peer).second) return cudaErrorPeerAccessAlreadyEnabled;
      if (!on && !peers.erase(peer)) return cudaErrorPeerAccessNotEnabled;
    }
    set_peer_access(current_device, peer, on);
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count, Location) {
  return general_call("cudaGetDeviceCount", [&](Runtime& r) {
    if (!count) return cudaErrorInvalidValue;
    *count = static_cast<int>(r.device_count());
    return r.device_count() == 0 ? r.reports.unusable() : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device, Location) {
  return runtime_call("cudaSetDevice", [&](Runtime& r) {
    if (!known(r, device)) return cudaErrorInvalidDevice;
    current_device = device;  // also for a lost device: its calls report the loss
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device, Location) {
  return runtime_call("cudaGetDevice", [&](Runtime&) {
    if (!device) return cudaErrorInvalidValue;
    *device = current_device;
    return cudaSuccess;
  });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned flags, Location) {
  return runtime_call("cudaInitDevice", [&](Runtime& r) {
    if (!known(r, device)) return cudaErrorInvalidDevice;
    return flags == 0 ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags, Location) {
  return runtime_call("cudaSetDeviceFlags", [&](Runtime&) {
    return flags & ~0xfu ? cudaErrorInvalidValue : cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device, Location) {
  return runtime_call("cudaGetDeviceProperties", [&](Runtime& r) {
    if (!properties) return cudaErrorInvalidValue;
    if (!known(r, device)) return cudaErrorInvalidDevice;
    *properties = properties_of(r, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device, Location) {
  return runtime_call("cudaDeviceGetAttribute", [&](Runtime& r) {
    if (!value) return cudaErrorInvalidValue;
    if (!known(r, device)) return cudaErrorInvalidDevice;
    return attribute_of(properties_of(r, device), attribute, *value) ? cudaSuccess
                                                                     : cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device, Location) {
  return runtime_call("cudaDeviceGetPCIBusId", [&](Runtime& r) {
    if (!id || length < 13) return cudaErrorInvalidValue;
    if (!known(r, device)) return cudaErrorInvalidDevice;
    std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0",
                  static_cast<unsigned>(device + 1) & 0xffu);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest, Location) {
  return runtime_call("cudaDeviceGetStreamPriorityRange", [&](Runtime&) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize(Location) {
  return runtime_call("cudaDeviceSynchronize", [&](Runtime& r) {
    {
      const Runtime::Lock lock(r.mutex);
      if (const cudaError_t error = r.forbidden_wait(current_device); error != cudaSuccess)
        return error;
    }
    r.synchronize_device(current_device);
    const Runtime::Lock lock(r.mutex);
    return r.reports.sticky_of(current_device);
  });
}

cudaError_t cudaDeviceReset(Location where) {
  return runtime_call("cudaDeviceReset", [&](Runtime& r) {
    const int device = current_device;
    {
      const Runtime::Lock lock(r.mutex);
      if (const cudaError_t error = r.forbidden_wait(device); error != cudaSuccess) return error;
    }
    r.synchronize_device(device);
    std::vector<detail::AllocationPtr> mine;
    {
      const Runtime::Lock lock(r.mutex);
      for (const auto& [address, allocation] : r.memory.allocations) {
        if (allocation->device != device || allocation->freed) continue;
        allocation->freed = true, allocation->free_call = "cudaDeviceReset",
        allocation->freed_where = where;
        mine.push_back(allocation);
      }
      for (const auto& [number, stream] : r.streams.by_number)
        if (stream->device == device) stream->alive = false, stream->destroyed = where;
      std::erase_if(r.streams.per_thread,
                    [&](const auto& entry) { return entry.first.second == device; });
      std::erase_if(r.streams.events, [&](const auto& entry) {
        if (entry.second->device != device) return false;
        detail::Streams::keep_dead(r.streams.dead_events, entry.first,
                                   {entry.second->created, where});
        return true;
      });
      r.streams.sweep();
    }
    r.run_all();  // other devices may still use the memory
    for (const detail::AllocationPtr& allocation : mine) r.retire(allocation);
    std::set<int> peers;
    {
      const Runtime::Lock lock(r.mutex);
      r.reports.devices[static_cast<std::size_t>(device)] = {};
      detail::DeviceMemory& memory = r.memory.of(device);
      memory.used = 0, memory.release_threshold = 0;
      peers.swap(memory.peers);
    }
    for (const int peer : peers) set_peer_access(device, peer, false);
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* out, Location) {
  return version("cudaDriverGetVersion", out);
}
cudaError_t cudaRuntimeGetVersion(int* out, Location) {
  return version("cudaRuntimeGetVersion", out);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer, Location) {
  return runtime_call("cudaDeviceCanAccessPeer", [&](Runtime& r) {
    if (!can) return cudaErrorInvalidValue;
    if (!known(r, device) || !known(r, peer)) return cudaErrorInvalidDevice;
    const Runtime::Lock lock(r.mutex);
    *can = device != peer && r.memory.peer_supported;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags, Location) {
  if (flags != 0) return detail::remember(cudaErrorInvalidValue);
  return peer_access("cudaDeviceEnablePeerAccess", peer, true);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer, Location) {
  return peer_access("cudaDeviceDisablePeerAccess", peer, false);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function, Location) {
  return runtime_call("cudaFuncGetAttributes", [&](Runtime& r) {
    if (!attributes) return cudaErrorInvalidValue;
    if (!function) return cudaErrorInvalidDeviceFunction;
    const Runtime::Lock lock(r.mutex);
    const auto set = r.memory.shared_bytes_of.find(function);
    *attributes = {};
    attributes->maxThreadsPerBlock = kThreads;
    attributes->ptxVersion = attributes->binaryVersion = kMajor * 10 + kMinor;
    attributes->maxDynamicSharedSizeBytes =
        set == r.memory.shared_bytes_of.end() ? kSharedPerBlock : set->second;
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value,
                                 Location) {
  return runtime_call("cudaFuncSetAttribute", [&](Runtime& r) {
    if (!function) return cudaErrorInvalidDeviceFunction;
    const Runtime::Lock lock(r.mutex);
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || static_cast<std::size_t>(value) > config().shared_limit)
          return cudaErrorInvalidValue;
        r.memory.shared_bytes_of[function] = value;
        return cudaSuccess;
      case cudaFuncAttributePreferredSharedMemoryCarveout:
        return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size,
                                                          std::size_t dynamic_shared_bytes,
                                                          Location) {
  return runtime_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Runtime&) {
    if (!blocks || block_size <= 0) return cudaErrorInvalidValue;
    if (!function) return cudaErrorInvalidDeviceFunction;
    const int warps = (block_size + 31) / 32 * 32;
    *blocks = block_size > kThreads
                  ? 0
                  : std::min(kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / warps);
    const std::size_t limit = config().shared_limit + kReserved;
    *blocks = static_cast<int>(
        std::min(static_cast<std::size_t>(*blocks), limit / (dynamic_shared_bytes + kReserved)));
    return cudaSuccess;
  });
}
