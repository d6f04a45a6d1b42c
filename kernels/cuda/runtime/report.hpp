#pragma once
#include <string>

#include "simt/cuda_runtime.hpp"
#if SIMT_EMULATED
#include "simt/runtime/control.hpp"
#endif

namespace braid::cuda {

/// What is wrong with a variable of the emulation; empty on a GPU.
inline std::string environment_error() {
#if SIMT_EMULATED
  return simt::environment_error();
#else
  return {};
#endif
}

/// What the emulation's checker said during this thread's latest call of the runtime, on lines of
/// its own; empty on a GPU, and if it said nothing.
inline std::string report_of_call() {
#if SIMT_EMULATED
  const std::string report = simt::report_of_call();
  return report.empty() ? report : "\n" + report;
#else
  return {};
#endif
}

/// What it said when the GPU was lost to it, likewise.
inline std::string report_of_loss([[maybe_unused]] int ordinal) {
#if SIMT_EMULATED
  const std::string report = simt::report_of_loss(ordinal);
  return report.empty() ? report : "\n" + report;
#else
  return {};
#endif
}

}  // namespace braid::cuda
