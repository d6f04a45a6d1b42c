#pragma once
#include <string>
#include <vector>

#include "simt/error.hpp"

// Kernels with one deliberate mistake each, and the same kernels without it. wrong_kernels.cu marks
// the lines that a report must name with `// here: <name>`.
namespace braid::simt_tests {

/// What the launchers work on: device memory.
struct Buffers {
  float* out;         // 64 floats, zero
  const float* in;    // 64 floats
  const float* host;  // 64 floats that are not device memory
  float* matrices;    // 3 x 64x64 floats
  unsigned* counter;  // zero
};

struct WrongKernel {
  const char* name;  // of the mark, and of the kernel without its namespace
  simt::Finding finding;
  const char* variable;  // "": none
  void (*wrong)(const Buffers&);
  void (*twin)(const Buffers&);
};
[[nodiscard]] const std::vector<WrongKernel>& wrong_kernels();
[[nodiscard]] std::string text_of_the_host(const char* a, char b);

// One launcher a kernel: wrong_kernels.cu and twin_kernels.cu.
#define SIMT_FOR_EACH_WRONG_KERNEL(X)                                        \
  X(shared_bounds, out_of_bounds, "u")                                       \
  X(global_bounds, out_of_bounds, "global allocation of 256 bytes")          \
  X(missing_barrier, race, "s")                                              \
  X(missing_loop_barrier, race, "s")                                         \
  X(missing_warp_barrier, race, "s")                                         \
  X(two_barriers, divergent_barrier, "")                                     \
  X(barrier_of_some, divergent_barrier, "")                                  \
  X(shuffle_of_half, divergent_warp, "")                                     \
  X(foreign_mask, wrong_mask, "")                                            \
  X(crossed_masks, wrong_mask, "")                                           \
  X(foreign_source, wrong_mask, "")                                          \
  X(uninitialised_shared, uninitialised, "s")                                \
  X(missing_atomic, race, "global allocation of 256 bytes")                  \
  X(two_blocks, race, "global allocation of 256 bytes")                      \
  X(host_pointer, invalid_address, "")                                       \
  X(misaligned_vector, misaligned, "global allocation of 256 bytes")         \
  X(weak_wait, uninitialised, "as")                                          \
  X(no_wait, async_copy, "")                                                 \
  X(missing_fence, race, "global allocation of 49152 bytes")                 \
  X(missing_fence_of_atomics, race, "global allocation of 256 bytes")        \
  X(last_thread, race, "s")                                                  \
  X(read_after_atomic, race, "s")                                            \
  X(uninitialised_global, uninitialised, "global allocation of 49152 bytes") \
  X(spin_on_flag, spin_wait, "global allocation of 256 bytes")               \
  X(spin_on_lock, spin_wait, "")                                             \
  X(spin_on_vote, spin_wait, "global allocation of 256 bytes")               \
  X(spin_on_barrier, spin_wait, "")                                          \
  X(spin_on_three, spin_wait, "global allocation of 256 bytes")              \
  X(spin_with_counter, spin_wait, "global allocation of 256 bytes")          \
  X(memset_past, out_of_bounds, "global allocation of 256 bytes")            \
  X(memcpy_unset, uninitialised, "s")                                        \
  X(device_variable, invalid_address, "")                                    \
  X(matrix_in_global, invalid_address, "")                                   \
  X(async_from_shared, invalid_address, "")                                  \
  X(async_source, race, "")                                                  \
  X(too_much_shared, shared_memory, "")                                      \
  X(local_of_another, invalid_address, "")

#define SIMT_DECLARE(name, finding, variable) \
  void wrong_##name(const Buffers& b);        \
  void twin_##name(const Buffers& b);
SIMT_FOR_EACH_WRONG_KERNEL(SIMT_DECLARE)
#undef SIMT_DECLARE

}  // namespace braid::simt_tests
