#include <braid/core/error.hpp>
#include <braid/kernels/cuda_native.hpp>

#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {
namespace {

CudaStream& own(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace

NativeStream::NativeStream(const char* name, Stream& stream) : name_(name), stream_(stream) {
  if (stream.device().type() != DeviceType::cuda)
    throw DeviceError(
        str(name, ": expected a stream of a CUDA device, got one of ", stream.device()));
  native_ = own(stream).get();
  Gpu& gpu = own(stream).gpu();
  int current = 0;
  cuda::check(cudaGetDevice(&current), "cudaGetDevice", gpu, stream.device());
  if (current != gpu.ordinal()) {
    cuda::check(cudaSetDevice(gpu.ordinal()), "cudaSetDevice", gpu, stream.device());
    before_ = current;
  }
  gpu.note(name, stream.device(), own(stream).number());
}

NativeStream::~NativeStream() {
  // cleared, so that no later call reports it
  if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) (void)cudaGetLastError();
}

void NativeStream::check(int code) const {
  cuda::check(static_cast<cudaError_t>(code), name_, own(stream_).gpu(), stream_.device());
}

}  // namespace braid::cuda
