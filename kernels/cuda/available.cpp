#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/core/random.hpp>
#include <braid/kernels/cuda.hpp>
#include <braid/kernels/cuda_native.hpp>

#if BRAID_WITH_CUDA
#include "cuda/runtime/make_backend.hpp"
#endif

namespace braid::cuda {

#if BRAID_WITH_CUDA

bool is_available() noexcept { return gpu_count() > 0; }

std::string unavailable_reason() {
  std::string reason;
  if (gpu_count(&reason) > 0) return {};
  return reason;
}

bool is_emulated() noexcept { return emulated(); }

#else

bool is_available() noexcept { return false; }
std::string unavailable_reason() {
  return "this build has no CUDA: it was configured with BRAID_CUDA=OFF";
}
bool is_emulated() noexcept { return false; }

NativeStream::NativeStream(const char* name, Stream& stream) : name_(name), stream_(stream) {
  throw DeviceError(
      str(name, ": expected a stream of a CUDA device, got one of ", stream.device()));
}
NativeStream::~NativeStream() = default;  // never runs: the constructor throws
void NativeStream::check(int) const { (void)name_, (void)stream_, (void)before_; }

GemmEngine gemm_engine() { return GemmEngine::automatic; }
void set_gemm_engine(GemmEngine engine) {
  if (engine == GemmEngine::cublas)
    throw DeviceError("set_gemm_engine: expected a build with CUDA, got BRAID_CUDA=OFF");
}

#endif

int device_count() { return braid::device_count(DeviceType::cuda); }
void synchronize(int index) {
  const int first = index < 0 ? 0 : index, last = index < 0 ? device_count() : index + 1;
  for (int i = first; i < last; ++i) braid::synchronize(Device(DeviceType::cuda, i));
}
void manual_seed(std::uint64_t seed) { braid::manual_seed(seed); }

void* detail::pointer_of(const Tensor& x, DType dtype) {
  if (x.device().type() != DeviceType::cuda)
    throw DeviceError(str("pointer: expected a tensor on a CUDA device, got ", x.device()));
  if (x.dtype() != dtype) throw DTypeError(str("pointer: expected ", dtype, ", got ", x.dtype()));
  return x.id()->data();
}

}  // namespace braid::cuda
