#pragma once
#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>

// Runs a program's own kernels and CUDA libraries on Braid's streams and memory: see
// docs/guides/custom_op.md. Available in every build. This file includes no CUDA header.
namespace braid::cuda {

/// Provides what a kernel launch needs: the cudaStream_t of a stream. During the lifetime of this
/// object, the stream's GPU is the calling thread's current one.
///
///     const cuda::NativeStream native("my_op", current_stream(x.device()));
///     const auto stream = static_cast<cudaStream_t>(native.get());
///     my_kernel<<<blocks, threads, 0, stream>>>(…);
///     native.check(cudaGetLastError());
///
/// The launched work runs in stream order: after the work that was queued before it. Memory that a
/// tensor releases is reused only after it. The host does not wait. So use current_stream(device),
/// where all ops queue their work. On another stream, use record_stream and wait_for too.
class NativeStream {
 public:
  /// `name` is the name of the work in error messages. It must live forever, as a literal does.
  /// Throws DeviceError unless the stream belongs to a CUDA device; DeviceLostError, CudaError.
  NativeStream(const char* name, Stream& stream);
  ~NativeStream();
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;

  /// Returns the cudaStream_t, which is never null: the constructor creates it if necessary.
  [[nodiscard]] void* get() const noexcept { return native_; }
  /// Throws the exception for a cudaError_t unless it is cudaSuccess: OutOfMemoryError, CudaError,
  /// or DeviceLostError, which every later use of the device throws too.
  void check(int code) const;

 private:
  const char* name_;
  Stream& stream_;
  void* native_ = nullptr;
  int before_ = -1;  // the GPU that was current before; -1: the same one
};

namespace detail { [[nodiscard]] void* pointer_of(const Tensor& x, DType dtype); }

/// Returns a pointer to the first element of a tensor on a CUDA device, for kernels. shape() and
/// strides() give the positions of the other elements. Throws DTypeError unless T is the dtype,
/// DeviceError unless x is on a CUDA device. Writes through the pointer are not tracked (neither by
/// autograd nor by version counters), so write to new tensors only.
template <class T> [[nodiscard]] T* pointer(const Tensor& x) {
  return static_cast<T*>(detail::pointer_of(x, dtype_of<std::remove_const_t<T>>));
}

}  // namespace braid::cuda
