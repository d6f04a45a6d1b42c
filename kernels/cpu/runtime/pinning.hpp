#pragma once
#include <vector>

namespace braid::cpu {

/// Assigns each thread of each logical CPU device to a core if BRAID_PIN=1. The threads of a device
/// get consecutive cores of the process's affinity mask: first the calling thread, then the
/// helpers.
class Pinning {
 public:
  /// Reads BRAID_PIN and the calling thread's affinity mask. Throws DeviceError unless BRAID_PIN is
  /// unset, empty, 0 or 1.
  explicit Pinning(int devices);
  [[nodiscard]] bool on() const noexcept { return on_; }
  /// The number of cores in the mask.
  [[nodiscard]] int cores() const noexcept { return static_cast<int>(cores_.size()); }
  [[nodiscard]] int devices() const noexcept { return devices_; }
  /// Returns the core of thread `thread` (0 is the caller) of a device that computes with
  /// `threads`.
  [[nodiscard]] int core_of(int device, int thread, int threads) const noexcept;
  /// Binds the calling thread to a core. If the system refuses, the thread stays unbound.
  static void bind(int core) noexcept;

 private:
  std::vector<int> cores_;
  int devices_;
  bool on_ = false;
};

}  // namespace braid::cpu
