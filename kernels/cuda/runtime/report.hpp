#pragma once
#include <string>

#include "simt/cuda_runtime.hpp"
#if SIMT_EMULATED
#include "simt/runtime/control.hpp"
#endif

namespace braid::cuda {

/// What the emulation's checker said last, on lines of its own; empty on a GPU.
inline std::string last_report() {
#if SIMT_EMULATED
  const std::string report = simt::last_report();
  return report.empty() ? report : "\n" + report;
#else
  return {};
#endif
}

}  // namespace braid::cuda
