#include "transfer/driver.hpp"

#include <braid/core/error.hpp>
#include <braid/core/internal/native_device.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/storage.hpp>
#include <braid/core/stream.hpp>

#include "simt/cuda_runtime.hpp"

namespace bench::transfer {
namespace {

using braid::Device;
using braid::DeviceType;
using braid::Tensor;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw braid::Error(braid::str(call, ": ", cudaGetErrorString(error)));
}

void make_current(Device device) {
  braid::NativeDevice* const native = braid::native_device(device);
  if (!native)
    throw braid::DeviceError(braid::str("driver_copy: expected a CUDA device, got ", device));
  native->make_current();
}

}  // namespace

Tensor pinned(std::int64_t count, Device device) {
  make_current(device);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* memory = nullptr;
  if (cudaMallocHost(&memory, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    throw braid::OutOfMemoryError(device, bytes, 0, 0, 0, "cudaMallocHost: no pinned host memory");
  }
  return braid::from_blob(memory, {count}, braid::DType::float32,
                          [memory] { (void)cudaFreeHost(memory); });
}

void driver_copy(const Tensor& to, const Tensor& from) {
  const bool up = to.device().type() == DeviceType::cuda;
  const Device device = up ? to.device() : from.device();
  make_current(device);
  auto* const stream = static_cast<cudaStream_t>(braid::current_stream(device).native());
  check(cudaMemcpyAsync(to.storage()->data(), std::as_const(from).storage()->data(),
                        to.storage()->bytes(), up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                        stream),
        "cudaMemcpyAsync");
}

}  // namespace bench::transfer
