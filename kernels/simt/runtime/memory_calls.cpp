#include <braid/core/error.hpp>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using detail::Place;
using detail::release_call;
using detail::Runtime;
using detail::runtime_call;

namespace {

// The error of a call that may wait, or may queue work on a legacy default stream.
cudaError_t unsafe(Runtime& r) {
  const Runtime::Lock lock(r.mutex);
  return r.forbidden_while_capturing();
}

constexpr unsigned kAllocFlags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
constexpr unsigned kRegisterFlags =
    cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;

int pool_device(const Runtime& r, cudaMemPool_t pool) {
  const auto number = reinterpret_cast<std::uintptr_t>(pool);
  return number >= 1 && number <= r.device_count() ? static_cast<int>(number) - 1 : -1;
}

cudaError_t give_pool(const char* call, cudaMemPool_t* pool, int device) {
  return runtime_call(call, [&](Runtime& r) {
    if (!pool) return cudaErrorInvalidValue;
    if (device < 0 || device >= static_cast<int>(r.device_count())) return cudaErrorInvalidDevice;
    *pool = reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(device) + 1);
    return cudaSuccess;
  });
}

cudaError_t malloc_async(Runtime& r, void** pointer, std::size_t bytes, cudaStream_t stream,
                         const char* call, Location where) {
  std::shared_ptr<detail::StreamState> on;
  {
    const Runtime::Lock lock(r.mutex);
    on = r.find_stream(stream, call, where);
    // an allocation by a graph is not emulated
    if (on)
      if (const cudaError_t error = r.forbidden_wait(*on); error != cudaSuccess) return error;
  }
  return on ? r.allocate(pointer, bytes, Place::device, on.get(), false, call, where)
            : cudaErrorInvalidResourceHandle;
}

// Frees or unregisters pinned memory.
cudaError_t free_pinned(Runtime& r, void* pointer, bool registered, const char* call,
                        Location where) {
  const detail::AllocationPtr allocation = r.take(pointer, Place::pinned, registered, call, where);
  if (!allocation) return registered ? cudaErrorHostMemoryNotRegistered : cudaErrorInvalidValue;
  bool used = false;
  {
    const Runtime::Lock lock(r.mutex);
    for (const detail::Watch& watch : r.memory.watches) {
      if (watch.allocation != allocation) continue;
      used = true;
      r.reports.add(
          ReportKind::pinned_free, watch.op->device, where, watch.op->where,
          braid::str(call, " at ", detail::describe(where), " gives up pinned memory that ",
                     detail::describe(*watch.op), watch.written ? " writes" : " reads",
                     ", before the host has waited for that"));
      if (r.reports.mode == ReportMode::sticky)
        r.reports.poison(watch.op->device, cudaErrorLaunchFailure, r.reports.last_text);
      break;
    }
  }
  r.run_all();
  r.free_now(allocation, call, where, !used);
  const Runtime::Lock lock(r.mutex);
  return r.reports.sticky_of(detail::current_device);
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes, Location where) {
  return runtime_call("cudaMalloc", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    return r.allocate(pointer, bytes, Place::device, nullptr, false, "cudaMalloc", where);
  });
}

cudaError_t cudaFree(void* pointer, Location where) {
  return release_call("cudaFree", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    if (pointer) {
      const detail::AllocationPtr allocation =
          r.take(pointer, Place::device, false, "cudaFree", where);
      if (!allocation) return cudaErrorInvalidValue;
      // Memory of cudaMallocAsync is freed without a wait: every operation that may use it is run,
      // but the host does not learn that they are complete.
      if (allocation->async) r.run_all();
      else r.synchronize_device(allocation->device);
      r.free_now(allocation, "cudaFree", where);
    }
    const Runtime::Lock lock(r.mutex);
    return r.reports.sticky_of(detail::current_device);
  });
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream,
                            Location where) {
  return runtime_call("cudaMallocAsync", [&](Runtime& r) {
    return malloc_async(r, pointer, bytes, stream, "cudaMallocAsync", where);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, Location where) {
  return runtime_call("cudaMallocFromPoolAsync", [&](Runtime& r) {
    const int device = pool_device(r, pool);
    {
      const Runtime::Lock lock(r.mutex);
      const auto on = r.find_stream(stream, "cudaMallocFromPoolAsync", where);
      if (!on) return cudaErrorInvalidResourceHandle;
      // memory of a device other than the stream's is not emulated
      if (device != on->device) return cudaErrorInvalidValue;
    }
    return malloc_async(r, pointer, bytes, stream, "cudaMallocFromPoolAsync", where);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, Location where) {
  return release_call("cudaFreeAsync", [&](Runtime& r) {
    std::shared_ptr<detail::StreamState> on;
    {
      const Runtime::Lock lock(r.mutex);
      on = r.find_stream(stream, "cudaFreeAsync", where);
      if (on && on->capture) return r.forbidden_wait(*on);
    }
    if (!on) return cudaErrorInvalidResourceHandle;
    const detail::AllocationPtr allocation =
        r.take(pointer, Place::device, false, "cudaFreeAsync", where);
    if (!allocation) return cudaErrorInvalidValue;
    {
      const Runtime::Lock lock(r.mutex);
      allocation->free_op = r.enqueue(
          *on, detail::OpKind::free, "cudaFreeAsync", where, [&r, allocation](detail::Op& op) {
            bool fine = false;
            {
              const Runtime::Lock runs(r.mutex);
              fine = r.reports.sticky_of(op.device) == cudaSuccess &&
                     r.touch(op.shared_from_this(), allocation, allocation->base, allocation->bytes,
                             detail::Access::release);
            }
            if (fine) r.ask_release(op, *allocation, ReportKind::use_after_free);
            r.retire(allocation);
          });
      allocation->free_op->always = true;
    }
    r.settle();
    const Runtime::Lock lock(r.mutex);
    return r.reports.sticky_of(on->device);
  });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned flags, Location where) {
  return runtime_call("cudaMallocHost", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    if (flags & ~kAllocFlags) return cudaErrorInvalidValue;
    return r.allocate(pointer, bytes, Place::pinned, nullptr, (flags & cudaHostAllocMapped) != 0,
                      "cudaMallocHost", where);
  });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags, Location where) {
  return runtime_call("cudaHostAlloc", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    if (flags & ~kAllocFlags) return cudaErrorInvalidValue;
    return r.allocate(pointer, bytes, Place::pinned, nullptr, (flags & cudaHostAllocMapped) != 0,
                      "cudaHostAlloc", where);
  });
}

cudaError_t cudaFreeHost(void* pointer, Location where) {
  return release_call("cudaFreeHost", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    return pointer ? free_pinned(r, pointer, false, "cudaFreeHost", where) : cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags, Location where) {
  return runtime_call("cudaHostRegister", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    if (!pointer || bytes == 0 || (flags & ~kRegisterFlags)) return cudaErrorInvalidValue;
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    auto allocation = std::make_shared<detail::Allocation>();
    allocation->base = static_cast<char*>(pointer), allocation->bytes = bytes,
    allocation->place = Place::pinned, allocation->registered = true;
    allocation->device = detail::current_device,
    allocation->mapped = (flags & cudaHostRegisterMapped) != 0;
    allocation->call = "cudaHostRegister", allocation->where = where;
    {
      const Runtime::Lock lock(r.mutex);
      if (const cudaError_t sticky = r.reports.sticky_of(detail::current_device);
          sticky != cudaSuccess)
        return sticky;
      const auto next = r.memory.allocations.lower_bound(begin);
      if (r.memory.find_allocation(pointer) ||
          (next != r.memory.allocations.end() && next->first < begin + bytes))
        return cudaErrorHostMemoryAlreadyRegistered;
      r.memory.allocations[begin] = allocation;
    }
    try {
      register_memory(pointer, bytes, MemoryKind::pinned, allocation->device);
    } catch (...) {
      const Runtime::Lock lock(r.mutex);
      r.memory.allocations.erase(begin);
      throw;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer, Location where) {
  return release_call("cudaHostUnregister", [&](Runtime& r) {
    if (const cudaError_t error = unsafe(r); error != cudaSuccess) return error;
    return pointer ? free_pinned(r, pointer, true, "cudaHostUnregister", where)
                   : cudaErrorInvalidValue;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags,
                                     Location) {
  return runtime_call("cudaHostGetDevicePointer", [&](Runtime& r) {
    if (!device_pointer || flags != 0) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const detail::AllocationPtr allocation = r.memory.find_allocation(host_pointer);
    if (!allocation || allocation->freed || allocation->place != Place::pinned)
      return cudaErrorInvalidValue;
    allocation->mapped = true;
    *device_pointer = host_pointer;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes, Location) {
  return runtime_call("cudaMemGetInfo", [&](Runtime& r) {
    if (!free_bytes || !total_bytes) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const detail::DeviceMemory& memory = r.memory.of(detail::current_device);
    *free_bytes = memory.capacity - memory.used;
    *total_bytes = memory.capacity;
    return r.reports.sticky_of(detail::current_device);
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer,
                                     Location) {
  return runtime_call("cudaPointerGetAttributes", [&](Runtime& r) {
    if (!attributes || !pointer) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    void* p = const_cast<void*>(pointer);
    const detail::AllocationPtr allocation = r.memory.find_allocation(pointer);
    if (!allocation || allocation->freed ||
        static_cast<char*>(p) >= allocation->base + allocation->bytes)
      *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, p};
    else if (allocation->place == Place::device)
      *attributes = {cudaMemoryTypeDevice, allocation->device, p, nullptr};
    else *attributes = {cudaMemoryTypeHost, allocation->device, p, p};
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device, Location) {
  return give_pool("cudaDeviceGetDefaultMemPool", pool, device);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device, Location) {
  return give_pool("cudaDeviceGetMemPool", pool, device);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    Location) {
  return runtime_call("cudaMemPoolSetAttribute", [&](Runtime& r) {
    const int device = pool_device(r, pool);
    if (device < 0 || !value) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    detail::DeviceMemory& memory = r.memory.of(device);
    switch (attribute) {
      case cudaMemPoolAttrReleaseThreshold:
        memory.release_threshold = *static_cast<std::uint64_t*>(value);
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        if (*static_cast<std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
        memory.peak = memory.used;
        return cudaSuccess;
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        return cudaSuccess;  // the emulated pools do not reuse memory
      default: return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    Location) {
  return runtime_call("cudaMemPoolGetAttribute", [&](Runtime& r) {
    const int device = pool_device(r, pool);
    if (device < 0 || !value) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const detail::DeviceMemory& memory = r.memory.of(device);
    switch (attribute) {
      case cudaMemPoolAttrReleaseThreshold:
        *static_cast<std::uint64_t*>(value) = memory.release_threshold;
        break;
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent: *static_cast<std::uint64_t*>(value) = memory.used; break;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh: *static_cast<std::uint64_t*>(value) = memory.peak; break;
      default: *static_cast<int*>(value) = 1; break;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t, Location) {
  // Nothing is cached: freed memory is free immediately.
  return runtime_call("cudaMemPoolTrimTo", [&](Runtime& r) {
    return pool_device(r, pool) < 0 ? cudaErrorInvalidValue : cudaSuccess;
  });
}
