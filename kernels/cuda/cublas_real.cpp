#include <braid/core/error.hpp>

#include "cuda/cublas_api.hpp"

namespace braid::cuda::cublas {

Functions library_functions() { return open_library(library_names()); }

bool is_installed() {
  static const bool opens = [] {
    try {
      (void)library_functions();
      return true;
    } catch (const DeviceError&) {
      return false;
    }
  }();
  return opens;
}

}  // namespace braid::cuda::cublas
