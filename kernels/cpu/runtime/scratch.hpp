#pragma once
#include <cstddef>

namespace braid::cpu {

/// At least `bytes` of 64-byte aligned memory that belongs to the calling thread until its next
/// call; the contents are unspecified. Kept by the thread, so only a larger request than all before
/// allocates. One user at a time: a kernel that calls another one must not hold it. Throws
/// std::bad_alloc.
[[nodiscard]] void* scratch(std::size_t bytes);
/// Another such block, for a kernel that is made of calls of other kernels.
[[nodiscard]] void* outer_scratch(std::size_t bytes);

}  // namespace braid::cpu
