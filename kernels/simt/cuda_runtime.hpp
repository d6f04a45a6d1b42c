#pragma once
#include "simt/mode.hpp"
// The CUDA runtime API. Where SIMT_EMULATED is 0 it is the toolkit's. Otherwise it is our emulation
// on the CPU: the same names, signatures, error codes and documented semantics. The emulated
// functions have one additional last parameter with a default value: the location of the call,
// which reports of wrong stream programs show. Calls that the emulation does not have do not
// compile.
#if !SIMT_EMULATED
#include <cuda_runtime.h>
#else
#include <cstddef>

#include "simt/location.hpp"
#include "simt/runtime/control.hpp"
#include "simt/runtime/cuda_types.hpp"
#include "simt/types.hpp"

#define BRAID_SIMT_CALL_SITE braid::simt::Location where = braid::simt::Location::current()

// Errors. These calls are neither counted nor injected.
/// Returns the last error of the calling thread and resets it to cudaSuccess, unless the current
/// device has a sticky error.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

// Devices. The current device belongs to the calling thread.
cudaError_t cudaGetDeviceCount(int* count, BRAID_SIMT_CALL_SITE);
cudaError_t cudaSetDevice(int device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaGetDevice(int* device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags,
                           BRAID_SIMT_CALL_SITE);
cudaError_t cudaSetDeviceFlags(unsigned int flags, BRAID_SIMT_CALL_SITE);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device,
                                   BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceSynchronize(BRAID_SIMT_CALL_SITE);
/// Frees everything of the current device and clears its sticky error.
cudaError_t cudaDeviceReset(BRAID_SIMT_CALL_SITE);
cudaError_t cudaDriverGetVersion(int* version, BRAID_SIMT_CALL_SITE);
cudaError_t cudaRuntimeGetVersion(int* version, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceDisablePeerAccess(int peer, BRAID_SIMT_CALL_SITE);

// Memory. New memory is filled with 0xff: NaN as a float, -1 as an integer.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes, BRAID_SIMT_CALL_SITE);
cudaError_t cudaFree(void* pointer, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream,
                            BRAID_SIMT_CALL_SITE);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes,
                           unsigned int flags = cudaHostAllocDefault, BRAID_SIMT_CALL_SITE);
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags,
                          BRAID_SIMT_CALL_SITE);
cudaError_t cudaFreeHost(void* pointer, BRAID_SIMT_CALL_SITE);
cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned int flags,
                             BRAID_SIMT_CALL_SITE);
cudaError_t cudaHostUnregister(void* pointer, BRAID_SIMT_CALL_SITE);
cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned int flags,
                                     BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes, BRAID_SIMT_CALL_SITE);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer,
                                     BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep_bytes, BRAID_SIMT_CALL_SITE);

// Copies. A copy from pageable memory is staged in the call. A copy to pageable memory is complete
// when the call returns.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream = nullptr,
                                BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind,
                         BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                              BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes, BRAID_SIMT_CALL_SITE);
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes,
                            cudaStream_t stream = nullptr, BRAID_SIMT_CALL_SITE);

// Streams. nullptr and cudaStreamLegacy are the legacy default stream of the current device.
// cudaStreamPerThread is a separate stream for each thread.
cudaError_t cudaStreamCreate(cudaStream_t* stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags,
                                      BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority,
                                         BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamDestroy(cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamSynchronize(cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamQuery(cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags = cudaEventWaitDefault, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device, BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                  BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode,
                                   BRAID_SIMT_CALL_SITE);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, BRAID_SIMT_CALL_SITE);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode, BRAID_SIMT_CALL_SITE);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data,
                               BRAID_SIMT_CALL_SITE);

// Graphs. They come from a capture only.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph,
                                 unsigned long long flags = 0, BRAID_SIMT_CALL_SITE);
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream, BRAID_SIMT_CALL_SITE);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance, BRAID_SIMT_CALL_SITE);
cudaError_t cudaGraphDestroy(cudaGraph_t graph, BRAID_SIMT_CALL_SITE);

// Events.
cudaError_t cudaEventCreate(cudaEvent_t* event, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventDestroy(cudaEvent_t event, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr,
                                     unsigned int flags = cudaEventRecordDefault,
                                     BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventQuery(cudaEvent_t event, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventSynchronize(cudaEvent_t event, BRAID_SIMT_CALL_SITE);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end,
                                 BRAID_SIMT_CALL_SITE);

// Functions. Register counts are not known on the host: the values are the limits of the emulated
// device.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function,
                                  BRAID_SIMT_CALL_SITE);
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value,
                                 BRAID_SIMT_CALL_SITE);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size,
                                                          std::size_t dynamic_shared_bytes,
                                                          BRAID_SIMT_CALL_SITE);

// The typed overloads that the toolkit's header adds for C++.
template <class T> cudaError_t cudaMalloc(T** pointer, std::size_t bytes, BRAID_SIMT_CALL_SITE) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes, where);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaStream_t stream,
                            BRAID_SIMT_CALL_SITE) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream, where);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes,
                           unsigned int flags = cudaHostAllocDefault, BRAID_SIMT_CALL_SITE) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes, flags, where);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned int flags,
                          BRAID_SIMT_CALL_SITE) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags, where);
}
template <class R, class... A>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, R (*function)(A...),
                                  BRAID_SIMT_CALL_SITE) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(function), where);
}
template <class R, class... A>
cudaError_t cudaFuncSetAttribute(R (*function)(A...), cudaFuncAttribute attribute, int value,
                                 BRAID_SIMT_CALL_SITE) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value, where);
}
template <class R, class... A>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, R (*function)(A...),
                                                          int block_size,
                                                          std::size_t dynamic_shared_bytes,
                                                          BRAID_SIMT_CALL_SITE) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(function), block_size, dynamic_shared_bytes, where);
}

#undef BRAID_SIMT_CALL_SITE
#endif
