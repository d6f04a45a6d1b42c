#pragma once
#include <cstddef>

namespace braid::cpu {

/// Returns at least `bytes` of 64-byte aligned memory that belongs to the calling thread until its
/// next call; the contents are unspecified. The thread keeps the memory, so only a request larger
/// than all previous ones allocates. It has one user at a time: a kernel that calls another one
/// must not hold it. Throws std::bad_alloc.
[[nodiscard]] void* scratch(std::size_t bytes);
/// A second such block, for a kernel that calls other kernels.
[[nodiscard]] void* outer_scratch(std::size_t bytes);

}  // namespace braid::cpu
