#include "cuda/launch.hpp"

#include <braid/core/error.hpp>

#include "cuda/runtime/cuda_backend.hpp"
#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {
namespace {

// the table of a CUDA device only receives its own streams
CudaStream& own(Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace

LaunchScope::LaunchScope(const char* op, Stream& stream)
    : op_(op),
      stream_(stream),
      guard_(own(stream).gpu(), stream.device()),
      native_(own(stream).get()) {
  own(stream).gpu().note(op, stream.device(), own(stream).number());
}

void LaunchScope::fail(cudaError_t error) const {
  cuda::check(error, op_, own(stream_).gpu(), stream_.device());
  throw InternalError(str(op_, ": expected a failed launch to throw"));
}

int processors_of(Stream& stream) {
  Gpu& gpu = own(stream).gpu();
  int count = gpu.processors();
  if (count == 0) {
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu.ordinal()), "matmul",
          gpu, stream.device());
    gpu.set_processors(count);
  }
  return count;
}

unsigned* tickets_of(Stream& stream) {
  if (unsigned* const counters = own(stream).tickets()) return counters;
  return static_cast<CudaDevice&>(*device_context(stream.device()).backend).tickets(own(stream));
}

void set_zero(const char* op, void* data, std::size_t bytes, Stream& stream) {
  const LaunchScope scope(op, stream);
  scope.check(cudaMemsetAsync(data, 0, bytes, scope.stream()));
}

Scratch::Scratch(std::size_t bytes, Stream& stream) : stream_(stream) {
  const Block block = device_context(stream.device()).backend->allocate(bytes, stream);
  data_ = block.data, bytes_ = block.bytes, tag_ = block.tag;
}

Scratch::~Scratch() {
  device_context(stream_.device()).backend->release(Block{data_, bytes_, tag_}, stream_);
}

}  // namespace braid::cuda
