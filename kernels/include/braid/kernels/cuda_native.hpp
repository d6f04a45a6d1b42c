#pragma once
#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>

// For kernels and CUDA libraries of a program's own, on Braid's streams and memory: see
// docs/guides/custom_op.md. In every build; no CUDA header is included here.
namespace braid::cuda {

/// A stream as CUDA knows it, and its GPU the calling thread's current one while this lives: what a
/// launch needs.
///
///     const cuda::NativeStream native("my_op", current_stream(x.device()));
///     const auto stream = static_cast<cudaStream_t>(native.get());
///     my_kernel<<<blocks, threads, 0, stream>>>(…);
///     native.check(cudaGetLastError());
///
/// Order and memory are those of the stream: what was queued before is done before, memory that a
/// tensor gives back is used again only after it, and nobody waits. So use current_stream(device),
/// where all ops queue their work. For another stream: record_stream, wait_for.
class NativeStream {
 public:
  /// `name` is what reports of errors call the work; it must live for ever (a literal). Throws
  /// DeviceError for a stream of no CUDA device, DeviceLostError, CudaError.
  NativeStream(const char* name, Stream& stream);
  ~NativeStream();
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;

  /// The cudaStream_t; never null, made if there was none.
  [[nodiscard]] void* get() const noexcept { return native_; }
  /// Throws what a cudaError_t means, unless it is cudaSuccess: OutOfMemoryError, CudaError, or
  /// DeviceLostError, now and at every later use of the device.
  void check(int code) const;

 private:
  const char* name_;
  Stream& stream_;
  void* native_ = nullptr;
  int before_ = -1;  // the GPU that was current; -1: this one
};

namespace detail { [[nodiscard]] void* pointer_of(const Tensor& x, DType dtype); }

/// The first element of a tensor on a CUDA device, for kernels; the other elements are where
/// shape() and strides() say. Throws DTypeError unless T is the dtype, DeviceError unless x is on a
/// CUDA device. Whoever writes there is an op: nobody else sees it, so write to fresh tensors only.
template <class T> [[nodiscard]] T* pointer(const Tensor& x) {
  return static_cast<T*>(detail::pointer_of(x, dtype_of<std::remove_const_t<T>>));
}

}  // namespace braid::cuda
