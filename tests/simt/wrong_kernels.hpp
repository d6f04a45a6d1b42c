#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "simt/error.hpp"

// Kernels with one deliberate mistake each, and the same kernels without it.
namespace braid::simt_tests {

/// The memory that the kernels work on: device memory, except for `host`.
struct Buffers {
  float* out;         // 64 floats, zero
  const float* in;    // 64 floats
  const float* host;  // 64 floats that are not device memory
  float* matrices;    // 3 x 64x64 floats
  unsigned* counter;  // zero
};

struct WrongKernel {
  const char* name;  // the mark, and the kernel's name without its namespace
  simt::Finding finding;
  const char* variable;  // "": none
  void (*kernel)(Buffers b, bool fixed);
  unsigned threads = 64, blocks = 1;
  std::size_t shared_bytes = 0;  // dynamic
};
[[nodiscard]] std::span<const WrongKernel> wrong_kernels();   // of wrong_kernels.cu
[[nodiscard]] std::span<const WrongKernel> wrong_barriers();  // of barrier_kernels.cu
/// Runs the kernel with its mistake, or without it if `fixed`.
void run_wrong(const WrongKernel& k, const Buffers& b, bool fixed = false);
[[nodiscard]] std::string text_of_the_host(const char* a, char b);

}  // namespace braid::simt_tests
