#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/runtime/control.hpp"
#include "simt/runtime/operation.hpp"

namespace braid::simt::detail {

/// Why every call on a device fails.
struct DeviceLoss {
  cudaError_t sticky = cudaSuccess;
  std::string reason;  ///< the report that caused it
};

/// A launch in the log.
struct LoggedLaunch {
  const std::string* kernel;
  int device;
  dim3 grid, block;
};

/// What the emulation has to tell: findings, the errors that stay with a device, the launches.
/// Guarded by the runtime's mutex.
struct Reports {
  void add(ReportKind kind, int device, Location where, Location other, const std::string& text);
  /// Adds a finding in a running operation. In sticky mode it ends the device.
  void add_op(ReportKind kind, const Op& op, Location other, const std::string& text,
              cudaError_t code = cudaSuccess);
  /// Makes the code stay with the device, unless another one does.
  void poison(int device, cudaError_t code, const std::string& reason = {});
  [[nodiscard]] cudaError_t sticky_of(int device) const {
    return devices.empty() ? unusable() : devices[static_cast<std::size_t>(device)].sticky;
  }
  /// Returns the error of every call that needs a device, if there is none.
  [[nodiscard]] cudaError_t unusable() const noexcept {
    return environment_error.empty() ? cudaErrorNoDevice : cudaErrorInitializationError;
  }
  /// Logs a launch. The log keeps the latest ones.
  void log_launch(const LoggedLaunch& launch);
  /// Forgets the pairs of operations that were reported, if there are many.
  void prune();
  /// Forgets everything but the mode and what is wrong with the environment.
  void clear();

  // what is wrong with a BRAID_SIMT_* variable; there are then no devices
  std::string environment_error;
  std::vector<DeviceLoss> devices;
  ReportMode mode = ReportMode::sticky;
  std::vector<Report> found;
  std::string last_text;
  std::uint64_t count = 0;  // never reset
  // pairs of operations, which are reported once
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;

  std::deque<LoggedLaunch> log;
  std::unordered_map<const void*, std::string> kernel_names;
};

}  // namespace braid::simt::detail
