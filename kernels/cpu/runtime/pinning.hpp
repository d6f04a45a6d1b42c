#pragma once
#include <vector>

namespace braid::cpu {

/// Which core each thread of each logical CPU device runs on, if pinning was asked for with
/// BRAID_PIN=1: device i's threads stand on consecutive cores of the process's affinity mask, the
/// thread that calls first, then its helpers.
class Pinning {
 public:
  /// Reads BRAID_PIN and the calling thread's affinity mask. Throws DeviceError unless BRAID_PIN is
  /// unset, empty, 0 or 1.
  explicit Pinning(int devices);
  [[nodiscard]] bool on() const noexcept { return on_; }
  /// Cores in the mask.
  [[nodiscard]] int cores() const noexcept { return static_cast<int>(cores_.size()); }
  [[nodiscard]] int devices() const noexcept { return devices_; }
  /// The core of thread `thread` (0 = the caller) of a device that computes with `threads`.
  [[nodiscard]] int core_of(int device, int thread, int threads) const noexcept;
  /// Binds the calling thread to a core; where the system refuses, the thread stays free.
  static void bind(int core) noexcept;

 private:
  std::vector<int> cores_;
  int devices_;
  bool on_ = false;
};

}  // namespace braid::cpu
