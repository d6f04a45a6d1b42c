#include <string>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/error_names.hpp"
#include "simt/runtime/error_texts.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt::detail {

bool find_error(std::string_view name, cudaError_t& code) {
  for (const ErrorText& error : kErrors) {
    if (name != error.name && name != std::to_string(static_cast<int>(error.code))) continue;
    code = error.code;
    return true;
  }
  return false;
}

}  // namespace braid::simt::detail

using namespace braid::simt;

const char* cudaGetErrorName(cudaError_t error) { return detail::error_name(error); }

const char* cudaGetErrorString(cudaError_t error) { return detail::error_text(error); }

cudaError_t cudaPeekAtLastError() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  const cudaError_t sticky =
      r.device_count() == 0 ? cudaSuccess : r.reports.sticky_of(detail::current_device);
  return sticky != cudaSuccess ? sticky : detail::last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  detail::last_error = cudaSuccess;
  return error;
}
