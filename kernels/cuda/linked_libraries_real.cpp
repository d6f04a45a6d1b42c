#include "cuda/linked_libraries.hpp"

namespace braid::cuda {

void register_linked_libraries() {}

}  // namespace braid::cuda
