#pragma once
#include <string>

#include "simt/cuda_runtime.hpp"
#if SIMT_EMULATED
#include "simt/runtime/control.hpp"
#endif

namespace braid::cuda {

/// Returns what is wrong with a variable of the emulation; empty on a GPU.
inline std::string environment_error() {
#if SIMT_EMULATED
  return simt::environment_error();
#else
  return {};
#endif
}

/// Returns what the emulation's checker reported during this thread's latest runtime call, on
/// separate lines; empty on a GPU, and if it reported nothing.
inline std::string report_of_call() {
#if SIMT_EMULATED
  const std::string report = simt::report_of_call();
  return report.empty() ? report : "\n" + report;
#else
  return {};
#endif
}

/// Returns, in the same form, the checker's report that made the GPU lost; empty if there is none.
inline std::string report_of_loss([[maybe_unused]] int ordinal) {
#if SIMT_EMULATED
  const std::string report = simt::report_of_loss(ordinal);
  return report.empty() ? report : "\n" + report;
#else
  return {};
#endif
}

}  // namespace braid::cuda
