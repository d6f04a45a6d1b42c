#pragma once
#include <string_view>

#include "simt/runtime/cuda_types.hpp"

namespace braid::simt::detail {

/// Finds an error by its name or number ("cudaErrorMemoryAllocation", "2"). Returns false if there
/// is no such error.
bool find_error(std::string_view name, cudaError_t& code);

}  // namespace braid::simt::detail
