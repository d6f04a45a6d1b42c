#pragma once
#include "simt/error.hpp"
#include "simt/runtime/control.hpp"
#include "simt/runtime/cuda_types.hpp"

namespace braid::simt::detail {

/// Returns the kind of report for a finding that was caused by a copy, a memset or a free.
[[nodiscard]] inline ReportKind kind_of(Finding finding) noexcept {
  switch (finding) {
    case Finding::race:
    case Finding::stream_race: return ReportKind::race;
    case Finding::use_after_free: return ReportKind::use_after_free;
    case Finding::out_of_bounds: return ReportKind::out_of_bounds;
    case Finding::wrong_device: return ReportKind::wrong_device;
    default: return ReportKind::kernel;
  }
}

/// Returns the error code that a GPU would return for it.
[[nodiscard]] inline cudaError_t code_of(Finding finding) noexcept {
  switch (finding) {
    case Finding::bad_launch: return cudaErrorInvalidConfiguration;
    case Finding::misaligned: return cudaErrorMisalignedAddress;
    case Finding::out_of_bounds:
    case Finding::invalid_address:
    case Finding::wrong_device:
    case Finding::use_after_free: return cudaErrorIllegalAddress;
    default: return cudaErrorLaunchFailure;
  }
}

}  // namespace braid::simt::detail
