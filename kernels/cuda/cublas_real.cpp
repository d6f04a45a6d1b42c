#include "cuda/cublas_api.hpp"

namespace braid::cuda::cublas {

Functions library_functions() { return open_library(library_names()); }

}  // namespace braid::cuda::cublas
