#include <dlfcn.h>

#include <string>

#include <braid/core/error.hpp>

#include "cuda/cublas_api.hpp"
#include "simt/cuda_runtime.hpp"

namespace braid::cuda::cublas {
namespace {

// The version of Braid's CUDA runtime comes first: a driver new enough for it can run the library.
#if !SIMT_EMULATED && CUDART_VERSION < 13000
constexpr const char* kNames[] = {"libcublas.so.12", "libcublas.so.13", "libcublas.so"};
#else
constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
#endif

template <class F>
void find(void* library, const char* library_name, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  if (function == nullptr)
    throw DeviceError(str("cuBLAS: expected ", library_name, " to have ", name, ", got none"));
}

}  // namespace

std::span<const char* const> library_names() noexcept { return kNames; }

Functions open_library(std::span<const char* const> names) {
  std::string tried, why;
  for (const char* const name : names) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (const char* const error = ::dlerror(); error != nullptr && why.empty()) why = error;
      tried += tried.empty() ? name : str(", ", name);
      continue;
    }
    Functions f;
    find(library, name, "cublasCreate_v2", f.create);
    find(library, name, "cublasDestroy_v2", f.destroy);
    find(library, name, "cublasSetStream_v2", f.set_stream);
    find(library, name, "cublasSetWorkspace_v2", f.set_workspace);
    find(library, name, "cublasSetMathMode", f.set_math_mode);
    find(library, name, "cublasSgemmStridedBatched", f.sgemm);
    find(library, name, "cublasDgemmStridedBatched", f.dgemm);
    find(library, name, "cublasGemmStridedBatchedEx", f.gemm_ex);
    // NVIDIA's recommendation for sm_90; older GPUs need less
    f.workspace_bytes = std::size_t{32} << 20;
    return f;
  }
  throw DeviceError(str("cuBLAS: expected one of ", tried, ", got none: ", why));
}

}  // namespace braid::cuda::cublas
