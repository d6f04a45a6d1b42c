#include <braid/core/internal/linked_library.hpp>

#include "cuda/linked_libraries.hpp"
#include "simt/nccl/fake.hpp"

namespace braid::cuda {

void register_linked_libraries() { register_linked_library("nccl", simt::nccl::find); }

}  // namespace braid::cuda
