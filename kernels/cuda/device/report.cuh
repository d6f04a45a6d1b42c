#pragma once
#include "cuda/device/element.cuh"
#include "cuda/runtime/device_errors.hpp"

// Error reports of kernels, which cannot throw.
namespace braid::cuda {

/// The names in a report: addresses of host literals, stored as integers so that no device
/// dereferences them.
struct FaultSite {
  DeviceErrorRecord* record;
  unsigned long long op, what;
};
inline FaultSite fault_site(DeviceErrorRecord* record, const char* op, const char* what) {
  return {record, static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(op)),
          static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(what))};
}

/// Fills in the record, unless it holds an earlier error. `got` at `position` is outside [low,
/// high).
BRAID_DEVICE void report(const FaultSite& site, DeviceFault fault, std::int64_t low,
                         std::int64_t high, std::int64_t got, std::int64_t position) {
  DeviceErrorRecord* const record = site.record;
  if (atomicCAS(&record->state, 0ull, 1ull) != 0ull) return;
  atomicExch(&record->fault, static_cast<unsigned long long>(fault));
  atomicExch(&record->op, site.op);
  atomicExch(&record->what, site.what);
  atomicExch(&record->low, static_cast<unsigned long long>(low));
  atomicExch(&record->high, static_cast<unsigned long long>(high));
  atomicExch(&record->got, static_cast<unsigned long long>(got));
  atomicExch(&record->position, static_cast<unsigned long long>(position));
  __threadfence_system();  // the host reads the fields once it sees the 2
  atomicExch(&record->state, 2ull);
}

}  // namespace braid::cuda
